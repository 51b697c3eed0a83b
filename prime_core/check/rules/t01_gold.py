"""T01: gold completions get the highest score."""

from __future__ import annotations

from prime_core.check.bounds import interval
from prime_core.check.paying import top_paid
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

SHOWN = 3


async def examine(subject: Subject) -> Result:
    """Score the gold completion of every sampled task."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    golds = [(view, view.gold) for view in views if view.gold is not None]
    if not golds:
        return failed(Finding(
            "the environment has no gold(task), so that nothing shows that a right answer is paid",
            fix="add gold(task) -> str, a completion that solves the task"))  # fmt: skip
    judged = await bench.judge([(view.index, text) for view, text in golds])
    missed = [(view, one) for (view, _), one in zip(golds, judged, strict=True)
              if not top_paid(one, info)]  # fmt: skip
    findings = [
        Finding(f"the gold completion of task {view.id} isn't paid {info.score_range[1]:g}",
                exploit=one.exploit(view.id))
        for view, one in missed[:SHOWN]
    ]  # fmt: skip
    return failed(*findings, **{"false rejects": interval(len(missed), len(golds))})


RULE = Rule(
    id="T01",
    name="gold",
    title="Gold completions get the highest score",
    level="bronze",
    cost="run",
    why="A reward that rejects the right answer teaches the model not to give it.",
    fix="mend the verifier or the gold answers until every one of them passes",
    bad="return Score(1.0 if completion.text == task.gold.upper() else 0.0)",
    good="return Score(1.0 if completion.text.strip() == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
