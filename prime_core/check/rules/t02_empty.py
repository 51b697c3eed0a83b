"""T02: saying nothing, or refusing, isn't paid above chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score empty completions and refusals."""
    return await overpaid(subject, lambda listing, views: policies.empty())


RULE = Rule(
    id="T02",
    name="empty",
    title="Saying nothing, or refusing, earns no more than chance",
    level="bronze",
    cost="run",
    why="It's the first thing that a policy finds.",
    fix="give the status invalid_output with the lowest value where there is no answer",
    bad="return Score(1.0 if task.gold.startswith(answer) else 0.0)   # '' starts everything",
    good="if not answer:\n    return Score(0.0, 'invalid_output')",
    kinds=("environment", "verifier"),
    examine=examine,
)
