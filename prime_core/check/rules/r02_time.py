"""R02: no completion takes the verifier longer than its limit."""

from __future__ import annotations

from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject
from prime_core.check.typed import without


async def examine(subject: Subject) -> Result:
    """Score pathological completions, each killed at its limit."""
    limit = subject.lab.limits.item_s
    return await without(subject, ("timeout",), f"takes longer than {limit:g} s")


RULE = Rule(
    id="R02",
    name="time",
    title="No completion takes the verifier longer than ten seconds",
    level="silver",
    cost="run",
    why="One completion that a grader works on for a minute costs the group, and the host; regular "
    "expressions and computer algebra both have such texts.",
    fix="limit the length before parsing; no nested quantifiers; no arithmetic of unbounded size",
    bad="re.fullmatch(r'(a+)+', answer)   # or int(sympify(answer))",
    good="if len(answer) > 1000:\n    return Score(0.0, 'invalid_output')",
    kinds=("environment", "verifier"),
    examine=examine,
)
