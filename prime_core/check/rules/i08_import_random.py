"""I08: importing leaves the global random state alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_core.check.importing import each_module
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


def _judge(seen: Mapping[str, Any]) -> str:
    found = [each for each in seen["changed"] if each.startswith("the state of ")]
    return f"changes {' and '.join(found)}" if found else ""


async def examine(subject: Subject) -> Result:
    """Compare the generators' states before and after."""
    return await each_module(subject, _judge)


RULE = Rule(
    id="I08",
    name="import-random",
    title="Importing the module leaves the global random generators alone",
    level="bronze",
    cost="import",
    why="A seed at import makes every draw of the process the same, and another plugin's results "
    "depend on who was imported first.",
    fix="use a generator of your own: random.Random(seed)",
    bad="random.seed(0)\nWORDS = random.sample(ALL, 100)",
    good="WORDS = random.Random(0).sample(ALL, 100)",
    examine=examine,
)
