"""P01: the pyproject says what the distribution is."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

WANTED = ("name", "version", "description", "requires-python")


def examine(subject: Subject) -> Result:
    """Read [project], or the metadata of a wheel."""
    found = subject.distribution
    if found.pyproject_error:
        return failed(Finding(f"pyproject.toml can't be read: {found.pyproject_error}",
                              path="pyproject.toml", line=1))  # fmt: skip
    if found.source is not None:
        said = found.project.get("dynamic")
        dynamic = said if isinstance(said, list) else []
        values = {key: found.project.get(key) or (key in dynamic) for key in WANTED}
    else:
        fields = {"name": "Name", "version": "Version", "description": "Summary",
                  "requires-python": "Requires-Python"}  # fmt: skip
        values = {key: found.metadata[field] for key, field in fields.items()}
    path = "pyproject.toml" if found.source else ""
    findings = [
        Finding(f"{key} is missing", path=path, line=1)
        for key, value in values.items()
        if not value
    ]
    try:
        Version(str(found.version or "0"))
    except InvalidVersion:
        findings.append(Finding(f"version {found.version!r} isn't one", path=path, line=1))
    given = found.project.get("requires-python") if found.source else values["requires-python"]
    try:
        findings += _cut_off(SpecifierSet(str(given or "")), path)
    except InvalidSpecifier:
        findings.append(Finding("requires-python isn't a specifier", path=path, line=1))
    return failed(*findings)


def _cut_off(python: SpecifierSet, path: str) -> Iterator[Finding]:
    """`<=3.12` means 3.12.0: whoever writes it wants 3.12, and leaves out all that anyone has."""
    for each in python:
        numbers = each.version.split(".")
        if each.operator == "<=" and len(numbers) == 2 and all(part.isdigit() for part in numbers):
            major, minor = numbers
            yield Finding(
                f"requires-python {each} leaves out {each.version}.1 and all later {each.version}",
                fix=f"write <{major}.{int(minor) + 1}", path=path, line=1,
            )  # fmt: skip


RULE = Rule(
    id="P01",
    name="metadata",
    title="The metadata says name, version, description and the Python versions",
    level="bronze",
    cost="static",
    why="An index, a lock file and a bug report name a distribution by these, or not at all.",
    fix="fill in [project] of pyproject.toml",
    bad='[project]\nname = "prime-env-words"\nversion = "0.1.0"',
    good='[project]\nname = "prime-env-words"\nversion = "0.1.0"\n'
    'description = "Spell words backwards"\nrequires-python = ">=3.11"',
    examine=examine,
)
