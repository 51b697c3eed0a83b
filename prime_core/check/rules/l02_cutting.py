"""L02: a gold completion that was cut off before its answer isn't paid."""

from __future__ import annotations

from prime_core.check.bounds import exceeds, interval
from prime_core.check.paying import share
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score gold completions without their last part."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    pairs = [
        (view, view.gold[:size])
        for view in views
        if view.gold and len(view.gold) >= 3
        for size in {len(view.gold) // 2, len(view.gold) * 2 // 3}
    ]
    if not pairs:
        return nothing_to_see("gold completions are too short to be cut")
    judged = await bench.judge([(view.index, text) for view, text in pairs])
    total = sum(share(each.value, info) for each in judged)
    chance = share(info.chance_level, info)
    accepted = sum(each.value >= info.score_range[1] for each in judged)
    measures = {"accepted": interval(accepted, len(judged))}
    if not exceeds(total, len(judged), max(chance, 0.05), whole=False):
        return failed(**measures)
    at = max(range(len(judged)), key=lambda number: judged[number].value)
    return failed(
        Finding(f"cut gold completions earn {total / len(judged):.4f} of the range "
                f"on average over {len(judged)} cases",
                exploit=judged[at].exploit(pairs[at][0].id)),
        **measures,
    )  # fmt: skip


RULE = Rule(
    id="L02",
    name="cutting",
    title="A gold completion that was cut in its middle is not paid",
    level="silver",
    cost="run",
    why="A cut answer is what a length limit leaves; if its beginning is enough, models learn to "
    "stop there.",
    fix="compare whole answers, not beginnings",
    bad="return Score(1.0 if task.gold.startswith(answer[:3]) else 0.0)",
    good="return Score(1.0 if answer == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
