"""H02: The most frequent answer earns no more than the declared chance level."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, policies.frequent)


RULE = Rule(
    id="H02",
    name="frequent-answer",
    title="The most frequent answer earns no more than the declared chance level",
    level="silver",
    cost="run",
    why=(
        "Where nine of ten answers are no, a model that says no has learnt nothing and is "
        "paid 0.9; only the declared chance level tells a reader."
    ),
    fix="declare the share of the most frequent answer as info.chance_level, or balance the tasks",
    bad='chance_level=0.0   # and 90 of 100 answers are "no"',
    good="chance_level=Counter(task.gold for task in tasks).most_common(1)[0][1] / len(tasks)",
    kinds=("environment", "verifier"),
    examine=examine,
)
