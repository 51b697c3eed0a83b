"""I06: importing starts neither threads nor processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_core.check.importing import each_module, events
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


def _judge(seen: Mapping[str, Any]) -> str:
    if events(seen, "processes"):
        return f"starts a process: {events(seen, 'processes')}"
    if events(seen, "threads") or "running threads" in seen["changed"]:
        return f"starts a thread: {events(seen, 'threads') or 'still running afterwards'}"
    return ""


async def examine(subject: Subject) -> Result:
    """Look at audit events and at the threads that run afterwards."""
    return await each_module(subject, _judge)


RULE = Rule(
    id="I06",
    name="import-processes",
    title="Importing the module starts neither threads nor processes",
    level="bronze",
    cost="import",
    why="A host counts what a call leaves behind and is replaced when it finds a thread; a process "
    "outlives the run.",
    fix="start them when the first completion is judged, and end them with it",
    bad="threading.Thread(target=refresh, daemon=True).start()",
    good="def verify(self, task, completion):\n    ...   # works alone",
    examine=examine,
)
