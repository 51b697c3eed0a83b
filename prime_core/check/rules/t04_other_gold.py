"""T04: another task's gold completion isn't paid above chance."""

from __future__ import annotations

from prime_core.check.bounds import exceeds, interval
from prime_core.check.paying import share
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject

STEPS = (1, 2, 7)  # how far away in the sample the other tasks stand


async def examine(subject: Subject) -> Result:
    """Score gold completions of other tasks, where their text differs."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    given = [view for view in views if view.gold is not None]
    pairs = [
        (view, other.gold)
        for number, view in enumerate(given)
        for step in STEPS
        if (other := given[(number + step) % len(given)]).gold != view.gold and other.gold
    ]
    if not pairs:
        return nothing_to_see("all sampled tasks have one gold completion, or none")
    judged = await bench.judge([(view.index, text) for view, text in pairs])
    total = sum(share(each.value, info) for each in judged)
    accepted = sum(each.value >= info.score_range[1] for each in judged)
    measures = {"false accepts": interval(accepted, len(judged))}
    chance = share(info.chance_level, info)
    if not exceeds(total, len(judged), max(chance, 0.01), whole=False):
        return failed(**measures)
    at = max(range(len(judged)), key=lambda number: judged[number].value)
    return failed(
        Finding(f"other tasks' gold completions earn {total / len(judged):.4f} of the range on "
                f"average over {len(judged)} cases; chance is {chance:.4f}",
                exploit=judged[at].exploit(pairs[at][0].id)), **measures,
    )  # fmt: skip


RULE = Rule(
    id="T04",
    name="other-gold",
    title="Another task's gold completion earns no more than chance",
    level="bronze",
    cost="run",
    why="A published data set pays any text at all, because it compares the truth of two texts: "
    "right answers to other questions show it at once.",
    fix="compare with this task's answer, and compare values, not whether there is one",
    bad="return Score(float(bool(completion.text) == bool(task.gold)))",
    good="return Score(1.0 if read(completion.text) == read(task.gold) else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
