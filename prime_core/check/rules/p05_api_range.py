"""P05: the requirement on prime-core has a lower and an upper bound that hold this version."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from prime_core import __version__
from prime_core.check.rule import Finding, Result, Rule, failed, passed
from prime_core.check.subject import Subject


def examine(subject: Subject) -> Result:
    """Look for the requirement and at its specifier."""
    found = subject.distribution
    path = "pyproject.toml" if found.source else ""
    own = [
        each for each in found.requirements
        if isinstance(each, Requirement) and canonicalize_name(each.name) == "prime-core"
    ]  # fmt: skip
    if canonicalize_name(found.name) == "prime-core":
        return passed()
    if not own:
        return failed(Finding("no requirement on prime-core", path=path, line=1))
    specifier = own[0].specifier
    operators = {each.operator for each in specifier}
    shown = str(specifier) or "any version"
    if not operators & {">=", ">", "==", "~="} or not operators & {"<", "<=", "==", "~="}:
        return failed(
            Finding(f"prime-core {shown} has no lower or no upper bound", path=path, line=1)
        )
    if not specifier.contains(__version__, prereleases=True):
        return failed(Finding(f"prime-core {shown} leaves out {__version__}", path=path, line=1))
    return passed(range=shown)


RULE = Rule(
    id="P05",
    name="api-range",
    title="The requirement on prime-core has bounds, and they hold this version",
    level="bronze",
    cost="static",
    why="A public framework changed its API three times in three months; packages without an upper "
    "bound broke where they were installed, not where they were written.",
    fix=f'write "prime-core>={__version__.rpartition(".")[0]},<1" into dependencies',
    bad='dependencies = ["prime-core"]',
    good='dependencies = ["prime-core>=0.1,<1"]',
    examine=examine,
)
