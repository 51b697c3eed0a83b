"""I05: importing writes no file."""

from __future__ import annotations

from prime_core.check.importing import each_module, events
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Look at audit events of files that are opened for writing, made or moved."""
    return await each_module(
        subject,
        lambda seen: f"writes: {events(seen, 'writes')}" if events(seen, "writes") else "",
    )


RULE = Rule(
    id="I05",
    name="import-writes",
    title="Importing the module writes no file and makes no folder",
    level="bronze",
    cost="import",
    why="An import that writes fails where the disk is read-only, and two at once race.",
    fix="write under context.cache_dir, in the factory",
    bad='os.makedirs(os.path.expanduser("~/.words"), exist_ok=True)',
    good="def make(params, context):\n    folder = context.cache_dir / 'words'",
    examine=examine,
)
