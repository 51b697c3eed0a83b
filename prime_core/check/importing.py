"""What rules of family I share: a look at every module's observation.

Invariant: where the import itself failed, rule I01 says so and the others couldn't look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prime_core.check.measures import Observation
from prime_core.check.rule import Finding, Result, failed
from prime_core.check.subject import Blocked, Subject


async def observed(subject: Subject) -> Observation:
    """The observation of modules that all could be imported.

    Raises:
        Blocked: one couldn't.
    """
    found = await subject.lab.observation()
    for module in subject.distribution.modules:
        if module not in found.modules or found.modules[module]["error"]:
            raise Blocked(f"{module} can't be imported (I01)")
    return found


async def each_module(
    subject: Subject, judge: Callable[[Mapping[str, Any]], str], **measures: str
) -> Result:
    """A finding for every module of which `judge` says something."""
    found = await observed(subject)
    findings = []
    for module, seen in found.modules.items():
        said = judge(seen)
        if said:
            findings.append(Finding(f"importing {module} {said}"))
    return failed(*findings, **measures)


def events(seen: Mapping[str, Any], sort: str) -> str:
    """The first event of a sort, as text; "" where there is none."""
    found = seen["events"].get(sort, [])
    return str(found[0]) if found else ""
