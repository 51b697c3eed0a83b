"""`checks.toml` beside a distribution's pyproject: what it claims, what it is checked with.

Read from the source by `prime_core.check.subject`. Invariant: an exemption has a reason, which is
printed and counted wherever results are.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prime_core.api import FormatError
from prime_core.check.plain_files import read_plain
from prime_core.config.sections import PluginChoice

NAME = "checks.toml"
HERE = "{here}"
LIMIT = 1 << 20  # bytes


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class CaseEntry(_Strict):
    """How one plugin is configured when it is checked; a plugin may have several."""

    plugin: str = Field(description="KIND.NAME, as its entry point says")
    params: dict[str, Any] = Field(default_factory=dict, alias="with", description="its parameters")
    verifier: PluginChoice | None = Field(
        default=None, description="replaces an environment's verifier"
    )
    golds: tuple[str, ...] = Field(
        default=(), description="gold answers that a verifier is checked with"
    )
    answer_format: str = Field(
        default="{gold}", description="a verifier's completion around a gold answer"
    )
    tasks: str = Field(
        default="",
        description="JSONL of a verifier's tasks instead of golds: completion, and gold or "
        "verification",
    )


class Evidence(_Strict):
    """Files that the rules of level gold read; each holds the digest of what it was made with."""

    profile: str = Field(
        default="", description="JSON that `prime-core check --prove profile` wrote"
    )
    training: str = Field(default="", description="JSON of a short run whose reward rises")
    replay: str = Field(default="", description="JSON of stored completions and their scores")


class ChecksFile(_Strict):
    """The whole file."""

    level: Literal["", "bronze", "silver", "gold"] = Field(default="", description="what it claims")
    exempt: dict[str, str] = Field(
        default_factory=dict, description="rule id to the reason why it doesn't hold here"
    )
    cases: tuple[CaseEntry, ...] = Field(default=(), description="how plugins are configured")
    evaluation_sets: tuple[str, ...] = Field(
        default=(), description="JSONL files whose texts no task may hold"
    )
    evidence: Evidence = Field(default_factory=Evidence, description="proofs for level gold")

    def for_plugin(self, label: str) -> list[CaseEntry]:
        """The entries of a plugin, or one without parameters."""
        return [each for each in self.cases if each.plugin == label] or [CaseEntry(plugin=label)]


def read_checks_file(folder: Path) -> ChecksFile:
    """The file of a source folder; an empty one where there is none.

    Raises:
        FormatError: it isn't TOML of this form.
    """
    path = folder / NAME
    if not path.exists():
        return ChecksFile()
    try:
        values = tomllib.loads(read_plain(path, LIMIT).decode("utf-8"))
        return ChecksFile.model_validate(_placed(values, str(folder)))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FormatError(f"not readable as TOML: {error}", where=str(path)) from error
    except ValidationError as error:
        lines = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
        )
        raise FormatError(
            lines, where=str(path), fix="see docs/how-to/check-an-environment.md"
        ) from error


def _placed(value: Any, folder: str) -> Any:
    """`{here}` in every text becomes the folder of the file."""
    if isinstance(value, str):
        return value.replace(HERE, folder)
    if isinstance(value, dict):
        return {key: _placed(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [_placed(each, folder) for each in value]
    return value
