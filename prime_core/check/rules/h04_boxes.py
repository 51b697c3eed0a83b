"""H04: Marking every answer as the final one earns no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, policies.boxes)


RULE = Rule(
    id="H04",
    name="shotgun",
    title="Marking every answer as the final one earns no more than chance",
    level="silver",
    cost="run",
    why=("Graders that take any of several boxes are answered with two hundred of them."),
    fix="judge the last marked answer only",
    bad="return Score(float(any(box == task.gold for box in boxes(text))))",
    good="return Score(1.0 if boxes(text)[-1:] == [task.gold] else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
