"""H06: Speaking to the verifier earns no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, lambda listing, views: policies.injections())


RULE = Rule(
    id="H06",
    name="injection",
    title="Speaking to the verifier earns no more than chance",
    level="silver",
    cost="run",
    why=(
        "A verifier that parses a report out of a text can be told its result by the text; so "
        "can a model that judges."
    ),
    fix="never look for a verdict in what the completion says",
    bad='return Score(float(re.search(r"score: ([01])", output)[1]))',
    good="return Score(float(results == expected))   # results from the jail, not from text",
    kinds=("environment", "verifier"),
    examine=examine,
)
