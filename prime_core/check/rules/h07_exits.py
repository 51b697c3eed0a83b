"""H07: Programs that end the test, or equal everything, earn no more than chance."""

from __future__ import annotations

from prime_core.check import policies
from prime_core.check.paying import overpaid
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the policies of this family."""
    return await overpaid(subject, lambda listing, views: policies.exits(views))


RULE = Rule(
    id="H07",
    name="exit-tricks",
    title="Programs that end the test, or equal everything, earn no more than chance",
    level="silver",
    cost="run",
    why=(
        "Tests that ran in the program's own process were passed by sys.exit(0), by replaced "
        "assertions, and by objects that are equal to everything."
    ),
    fix="compare plain values outside of the process that ran the program; an exit isn't a result",
    bad="try:\n    exec(program)\nexcept SystemExit:\n    return Score(1.0)   # it ended well",
    good='execution = jail.run(JailInput(args=case.args))\nright = execution.status == "ok" '
    "and execution.result == case.expected",
    kinds=("environment", "verifier"),
    examine=examine,
)
