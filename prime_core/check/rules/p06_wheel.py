"""P06: a wheel can be built and unpacked."""

from __future__ import annotations

from prime_core.check.distribution import Distribution
from prime_core.check.rule import Finding, Result, Rule, failed, passed
from prime_core.check.subject import Subject


def examine(subject: Subject) -> Result:
    """Staging built it in a jail already."""
    found = subject.distribution
    if found.build_error:
        return failed(
            Finding(
                f"no wheel: {found.build_error}", path="pyproject.toml", line=1, fix=_fix(found)
            )
        )
    return passed(sha256=found.wheel_digest[:16], files=str(len(found.wheel_names)))


def _fix(found: Distribution) -> str:
    """The rule's own, but where the backend isn't here: builds get nothing from the network."""
    system = found.pyproject.get("build-system", {})
    backend = system.get("build-backend", "") if isinstance(system, dict) else ""
    top = str(backend).partition(":")[0].partition(".")[0]
    requires = system.get("requires") if isinstance(system, dict) else None
    if not top or f"No module named '{top}'" not in found.build_error:
        return ""
    names = [repr(str(each)) for each in requires] if isinstance(requires, list) else []
    return f"install its build backend beside the check: pip install {' '.join(names) or top}"


RULE = Rule(
    id="P06",
    name="wheel",
    title="A wheel can be built without network",
    level="bronze",
    cost="static",
    why="What can't be built can't be pinned, signed or installed by somebody else.",
    fix="run `pip wheel --no-deps .` and mend what it says; hatchling is the usual backend",
    bad='[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchlin.build"',
    good='[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"',
    examine=examine,
)
