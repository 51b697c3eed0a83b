"""H01: One answer to every task earns no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, lambda listing, views: policies.constants())


RULE = Rule(
    id="H01",
    name="constant",
    title="One answer to every task earns no more than chance",
    level="bronze",
    cost="run",
    why=(
        "One short text to everything is the easiest policy there is. A public data set pays "
        "1.0 for 0 because it compares the first characters."
    ),
    fix="count what the best constant answer earns, declare it as chance_level, or pay less for it",
    bad="return Score(1.0 if task.gold.startswith(answer) else 0.0)",
    good="return Score(1.0 if answer == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
