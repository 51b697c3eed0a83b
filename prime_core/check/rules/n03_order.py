"""N03: a score doesn't depend on what was scored before, nor on how often."""

from __future__ import annotations

from prime_core.check.repeating import deterministic, differing, work
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject

REPEATS = 3


async def examine(subject: Subject) -> Result:
    """Score the same completions forwards, backwards, and again, in one process."""
    if not await deterministic(subject):
        return nothing_to_see("it declares itself not deterministic")
    bench = await subject.lab.bench(subject)
    items = await work(subject)
    first = await bench.judge(items)
    findings: list[Finding] = []
    for _ in range(REPEATS):
        again = await bench.judge(items[::-1], fresh=True)
        findings += differing(first, again[::-1], "scored again in another order")
    return failed(*findings[:3], completions=str(len(items)))


RULE = Rule(
    id="N03",
    name="order",
    title="A score depends neither on what was scored before it, nor on how often",
    level="silver",
    cost="run",
    why="Groups are compared within themselves; a reward that drifts with the count of calls "
    "trains on the order of the queue.",
    fix="keep no state between calls of verify",
    bad="self.seen.add(answer)\nreturn Score(0.0 if answer in self.seen else 1.0)",
    good="return Score(1.0 if answer == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
