"""R01: no completion makes the verifier raise or crash."""

from __future__ import annotations

from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject
from prime_core.check.typed import CRASHES, without


async def examine(subject: Subject) -> Result:
    """Score pathological completions."""
    return await without(subject, CRASHES, "makes the verifier raise or crash")


RULE = Rule(
    id="R01",
    name="crashes",
    title="No completion makes the verifier raise or crash",
    level="silver",
    cost="run",
    why="Scorers of public data sets raise on any answer that is no number. An exception is an "
    "error, and its rollout is lost to its group.",
    fix="give invalid_output for what can't be read; catch what the parser raises, by name",
    bad="return Score(1.0 if int(answer) == int(task.gold) else 0.0)",
    good="if not NUMBER.fullmatch(answer):\n    return Score(0.0, 'invalid_output')",
    kinds=("environment", "verifier"),
    examine=examine,
)
