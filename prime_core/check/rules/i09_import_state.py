"""I09: importing changes no other state of the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_core.check.importing import each_module
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject

OTHERS = ("signal handlers", "exit handlers", "running threads")  # I06 and I07 say these


def _judge(seen: Mapping[str, Any]) -> str:
    found = [
        each for each in seen["changed"]
        if each not in OTHERS and not each.startswith("the state of ")
    ]  # fmt: skip
    return f"changes {', '.join(found)}" if found else ""


async def examine(subject: Subject) -> Result:
    """Compare environment variables, paths, limits, locale, hooks, builtins and logging."""
    return await each_module(subject, _judge)


RULE = Rule(
    id="I09",
    name="import-state",
    title="Importing the module changes nothing else of the process",
    level="bronze",
    cost="import",
    why="An environment variable, a recursion limit or a root logger that an import changed "
    "changes what the next plugin does.",
    fix="set it where it's needed and set it back",
    bad='os.environ["TOKENIZERS_PARALLELISM"] = "false"\nsys.setrecursionlimit(10**6)',
    good="logger = logging.getLogger(__name__)",
    examine=examine,
)
