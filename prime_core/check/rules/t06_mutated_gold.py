"""T06: gold completions with a changed answer aren't accepted."""

from __future__ import annotations

from prime_core.check.bounds import interval, lower_bound
from prime_core.check.mutations import mutated
from prime_core.check.paying import top_paid
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject

# Some changed answers are right by accident (a neighbour within a stated tolerance).
TOLERATED = 0.02
SHOWN = 3


async def examine(subject: Subject) -> Result:
    """Score neighbours, other signs, other words in the answer's place."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    answers = {task.id: task.gold or "" for task in listing.tasks}
    pairs = [
        (view, text)
        for view in views
        if view.gold is not None
        for text in mutated(view.gold, answers.get(view.id, ""))
        if text not in view.writings
    ]
    if not pairs:
        return nothing_to_see("no gold completion has an answer that can be changed by rule")
    judged = await bench.judge([(view.index, text) for view, text in pairs])
    paid = [(view, one) for (view, _), one in zip(pairs, judged, strict=True)
            if top_paid(one, info)]  # fmt: skip
    measures = {"false accepts": interval(len(paid), len(pairs))}
    if lower_bound(len(paid), len(pairs), 0.95) <= TOLERATED:
        return failed(**measures)
    findings = [
        Finding(f"a changed gold completion of task {view.id} gets the highest score "
                f"({measures['false accepts']} of all changed ones do)",
                exploit=one.exploit(view.id))
        for view, one in paid[:SHOWN]
    ]  # fmt: skip
    return failed(*findings, **measures)


RULE = Rule(
    id="T06",
    name="mutated-gold",
    title="Gold completions with a changed answer are not accepted",
    level="silver",
    cost="run",
    why="Near misses are what a half-trained model says; paying them ends the training there.",
    fix="compare exactly, or state the tolerance and keep it below the distance to a neighbour",
    bad="return Score(1.0 if answer[:2] == task.gold[:2] else 0.0)",
    good="return Score(1.0 if int(answer) == int(task.gold) else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
