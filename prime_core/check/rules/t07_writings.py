"""T07: other writings of the gold answer are accepted."""

from __future__ import annotations

from prime_core.check.bounds import interval
from prime_core.check.paying import top_paid
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject

SHOWN = 3


async def examine(subject: Subject) -> Result:
    """Score what `writings(task)` offers, and the gold completion with white space around it."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    given = [view for view in views if view.gold is not None]
    pairs = [(view, text, "a writing") for view in given for text in view.writings]
    pairs += [(view, f"{view.gold}\n", "the gold completion and a line feed") for view in given]
    if not pairs:
        return nothing_to_see("the environment has neither gold(task) nor writings(task)")
    judged = await bench.judge([(view.index, text) for view, text, _ in pairs])
    golds = await bench.judge([(view.index, view.gold or "") for view, _, _ in pairs])
    missed = [
        (view, one, said)
        for (view, _, said), one, gold in zip(pairs, judged, golds, strict=True)
        if top_paid(gold, info) and not top_paid(one, info)
    ]  # fmt: skip
    findings = [
        Finding(f"{said} of task {view.id} isn't paid as the gold completion is",
                exploit=one.exploit(view.id))
        for view, one, said in missed[:SHOWN]
    ]  # fmt: skip
    return failed(*findings, **{"false rejects": interval(len(missed), len(pairs))})


RULE = Rule(
    id="T07",
    name="writings",
    title="Other writings of the gold answer are accepted",
    level="silver",
    cost="run",
    why="Graders reject between a few and a third of right answers for how they're written; every "
    "one of them is noise in the reward.",
    fix="read the answer's value; list what must pass in the optional member writings(task)",
    bad="return Score(1.0 if completion.text == task.gold else 0.0)   # '12\\n' is wrong",
    good="return Score(1.0 if completion.text.strip() == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
