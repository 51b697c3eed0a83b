"""D03: a second load in the same process gives the same tasks in the same order."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Compare the digests of two loads, the second read backwards."""
    found = await subject.lab.ready(subject)
    if found.not_json:
        return Result(undecided=f"tasks aren't plain JSON (D07): {found.not_json}")
    findings = []
    if found.again != found.digest:
        findings.append(Finding("the second load gives other tasks, or another order"))
    elif found.info != found.info_again:
        findings.append(Finding(f"the second load says {found.info_again}, not {found.info}"))
    return failed(*findings)


RULE = Rule(
    id="D03",
    name="reload",
    title="Made again in the same process, the environment has the same tasks in the same order",
    level="bronze",
    cost="run",
    why="Tasks are addressed by their index, by hosts that are replaced while a run goes on. One "
    "public data set changes between two loads of one process.",
    fix="draw from a generator made from the parameters' seed, not from a global one",
    bad="random.shuffle(tasks)",
    good="random.Random(params.seed).shuffle(tasks)",
    kinds=("environment",),
    examine=examine,
)
