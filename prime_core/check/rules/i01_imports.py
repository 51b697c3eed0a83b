"""I01: every module can be imported, and registers what its entry points declare."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Look at the observation of the modules and of the plugins' registration."""
    found = await subject.lab.observation()
    findings = [
        Finding(f"importing {module} raised {seen['error']}")
        for module, seen in found.modules.items()
        if seen["error"]
    ]
    if found.ended:
        findings.append(Finding(f"while {found.at or 'it ended'}: {found.ended}"))
    absent = [each for each in subject.distribution.modules if each not in found.modules]
    if absent and not findings:
        findings.append(Finding(f"what importing {absent[0]} does was never told"))
    if not findings:
        findings = [
            Finding(
                f"{label} is not {seen['phase']}: {seen['error']}", fix=str(seen.get("fix", ""))
            )
            for label, seen in found.plugins.items()
            if seen.get("error")
        ]
    return failed(*findings)


RULE = Rule(
    id="I01",
    name="imports",
    title="Every module can be imported, and registers exactly the plugins that it declares",
    level="bronze",
    cost="import",
    why="A run that selects the plugin would stop here.",
    fix="run `prime-core plugins doctor` where it is installed, and mend what it says",
    bad="def prime_environments():   # no @hookimpl: pluggy never calls it",
    good="@hookimpl\ndef prime_environments() -> list[EnvironmentSpec]:",
    examine=examine,
)
