"""T05: the environment's own wrong completions don't get the highest score."""

from __future__ import annotations

from prime_core.check.bounds import interval
from prime_core.check.paying import top_paid
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject

SHOWN = 3


async def examine(subject: Subject) -> Result:
    """Score what `wrong(task, rng)` gives under several seeds."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    pairs = [(view, text) for view in views for text in view.wrong]
    if not pairs:
        return nothing_to_see("the environment has no wrong(task, rng)")
    judged = await bench.judge([(view.index, text) for view, text in pairs])
    paid = [(view, one) for (view, _), one in zip(pairs, judged, strict=True)
            if top_paid(one, info)]  # fmt: skip
    findings = [
        Finding(f"a wrong completion of task {view.id} gets the highest score",
                exploit=one.exploit(view.id))
        for view, one in paid[:SHOWN]
    ]  # fmt: skip
    return failed(*findings, **{"false accepts": interval(len(paid), len(pairs))})


RULE = Rule(
    id="T05",
    name="wrong",
    title="The completions of wrong(task, rng) never get the highest score",
    level="bronze",
    cost="run",
    why="The author knows best which wrong answers look right.",
    fix="mend the verifier, or the generator where what it makes is right after all",
    bad="return Score(1.0 if abs(float(answer) - float(task.gold)) < 1 else 0.0)",
    good="return Score(1.0 if Decimal(answer) == Decimal(task.gold) else 0.0)",
    kinds=("environment",),
    examine=examine,
)
