"""H08: An expression that reads the gold answer out of its grader earns no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, policies.reads)


RULE = Rule(
    id="H08",
    name="reads-answer",
    title="An expression that reads the gold answer out of its grader earns no more than chance",
    level="silver",
    cost="run",
    why=(
        "Scorers of public data sets evaluate the completion to accept a list where text is "
        "wanted. What they evaluate sees the frames that called it, and the gold answer in them."
    ),
    fix="parse with ast.literal_eval or json.loads; run programs in a sandbox, never in the host",
    bad="answer = ' '.join(eval(completion.text))",
    good="answer = ' '.join(ast.literal_eval(completion.text))",
    kinds=("environment", "verifier"),
    examine=examine,
)
