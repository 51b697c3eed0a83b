"""H05: Answer marks with nothing in them earn no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, lambda listing, views: policies.tags())


RULE = Rule(
    id="H05",
    name="empty-tags",
    title="Answer marks with nothing in them earn no more than chance",
    level="silver",
    cost="run",
    why=("An empty box is equal to nothing, and to every default that a parser falls back to."),
    fix="an empty answer is invalid_output, worth the lowest value",
    bad='answer = match[1] if match else ""\nreturn Score(float(task.gold.endswith(answer)))',
    good='if not answer:\n    return Score(0.0, "invalid_output")',
    kinds=("environment", "verifier"),
    examine=examine,
)
