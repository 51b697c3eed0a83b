"""I10: parameters have valid defaults, refuse unknown keys, and say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prime_core.check.importing import observed
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Look at the parameter model of every plugin."""
    found = await observed(subject)
    findings: list[Finding] = []
    for label, seen in found.plugins.items():
        parameters = seen.get("parameters")
        if parameters is not None:
            findings += _problems(label, parameters)
    return failed(*findings)


def _problems(label: str, found: Mapping[str, Any]) -> Iterator[Finding]:
    if "schema_error" in found:
        yield Finding(f"the parameters of {label} have no JSON schema: {found['schema_error']}")
        return
    if found["default_error"]:
        yield Finding(f"the defaults of {label} are refused: {found['default_error'][:300]}")
    for error in found["case_errors"]:
        if error and not found["default_error"]:
            yield Finding(
                f"{label} can't be made: {error[:300]}",
                fix="give the required parameters in checks.toml, [[cases]] with = {...}",
            )
    if found["takes_unknown"]:
        yield Finding(
            f"{label} takes a parameter that doesn't exist",
            fix="inherit prime_core.api.Params, which refuses unknown keys",
        )
    if found["undescribed"]:
        yield Finding(
            f"parameters of {label} have no description: {', '.join(found['undescribed'])}",
            fix="write Field(default, description=...)",
        )


RULE = Rule(
    id="I10",
    name="parameters",
    title="Parameters have valid defaults and descriptions, and unknown ones are refused",
    level="bronze",
    cost="import",
    why="A misspelt parameter that is ignored trains another environment than the config says.",
    fix="declare parameters as fields of a prime_core.api.Params with default and description",
    bad="class WordsParams(BaseModel):\n    length: int = 5",
    good='class WordsParams(Params):\n    length: int = Field(5, ge=1, description="letters")',
    examine=examine,
)
