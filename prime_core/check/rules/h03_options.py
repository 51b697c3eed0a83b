"""H03: Naming every answer at once earns no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, policies.options)


RULE = Rule(
    id="H03",
    name="all-options",
    title="Naming every answer at once earns no more than chance",
    level="silver",
    cost="run",
    why=(
        "A verifier that looks for the right answer among what was said is content with a "
        "list of all answers."
    ),
    fix="take one answer from the completion: the last one, or none where there are several",
    bad='return Score(1.0 if task.gold in answer.split(", ") else 0.0)',
    good="return Score(1.0 if answer == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
