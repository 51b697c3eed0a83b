"""P08: every requirement can be met by name and version, here and elsewhere."""

from __future__ import annotations

import importlib.metadata
import platform

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


def examine(subject: Subject) -> Result:
    """Hold each requirement against what is installed beside the check."""
    found = subject.distribution
    path = "pyproject.toml" if found.source else ""
    findings = []
    python = str(found.metadata["Requires-Python"] or found.project.get("requires-python") or "")
    try:
        fits = SpecifierSet(python).contains(platform.python_version(), prereleases=True)
    except InvalidSpecifier:
        fits = True  # P01 says it
    if not fits:
        findings.append(Finding(
            f"it wants Python {python}, this is {platform.python_version()}", path=path, line=1,
            fix="widen requires-python, or check it with a Python that it allows"))  # fmt: skip
    for each in found.requirements:
        problem = _problem(each)
        if problem:
            findings.append(Finding(*problem, path=path, line=1))
    return failed(*findings, requirements=str(len(found.requirements)))


def _problem(each: Requirement | str) -> tuple[str, str] | None:
    if isinstance(each, str):
        return f"{each!r} isn't a requirement", "write it as NAME>=VERSION,<VERSION"
    if each.url:
        return f"{each.name} is required from {each.url}", "require it by name, from an index"
    try:
        version = importlib.metadata.version(each.name)
    except importlib.metadata.PackageNotFoundError:
        return (
            f"it requires {each}, which isn't installed beside the check",
            f"install it here first: pip install '{each}'; if pip finds none, no one can install "
            "this distribution",
        )
    if not each.specifier.contains(version, prereleases=True):
        return f"it requires {each}, installed is {version}", f"pip install '{each}'"
    return None


RULE = Rule(
    id="P08",
    name="requirements",
    title="Every requirement is met by a release of an index, and by what is installed here",
    level="bronze",
    cost="static",
    why="One published environment requires a package that no index has, so that nobody could ever "
    "install it; another excludes the Python it says it supports.",
    fix="require released packages by name",
    bad='dependencies = ["prime-core>=0.1,<1", "my-unreleased-core>=1"]',
    good='dependencies = ["prime-core>=0.1,<1"]',
    examine=examine,
)
