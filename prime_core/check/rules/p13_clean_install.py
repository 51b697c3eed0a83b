"""P13: pip installs the wheel into an empty environment, and its plugins work there."""

from __future__ import annotations

from prime_core.check.installing import Installed, install_alone, requirement_of
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Install it beside nothing but what it requires; import, make and ask its plugins."""
    found = subject.distribution
    if found.target_is_installed:
        return nothing_to_see("it is installed already; check its folder or its wheel")
    seen = await install_alone(subject)
    measures = {"beside": f"{seen.required} distributions"}
    path = "pyproject.toml" if found.source else ""
    if seen.pip:
        return failed(Finding(f"pip can't install it: {seen.pip}", path=path, line=1,
                              fix="mend the wheel's metadata; `pip install WHEEL` says the same"),
                      **measures)  # fmt: skip
    if seen.at:
        return failed(
            Finding(f"installed with what it requires and nothing else, {seen.at} failed: "
                    f"{seen.error}", path=path, line=1, fix=_fix(seen)),
            **measures,
        )  # fmt: skip
    return failed(**measures)


def _fix(seen: Installed) -> str:
    name = requirement_of(seen.lacks)
    return f"add {name} to dependencies in pyproject.toml" if name else ""


RULE = Rule(
    id="P13",
    name="clean-install",
    title="pip installs the wheel into an empty environment, and its plugins work there with what "
    "it requires and nothing else",
    level="bronze",
    cost="run",
    why="What works where it was written, beside everything that its author has installed, fails "
    "where it's installed alone: a requirement that nobody wrote down is the usual reason.",
    fix="declare everything that it imports, also inside functions, in dependencies",
    bad='dependencies = ["prime-core>=0.1,<1"]   # and the module imports sympy',
    good='dependencies = ["prime-core>=0.1,<1", "sympy>=1.13"]',
    examine=examine,
)
