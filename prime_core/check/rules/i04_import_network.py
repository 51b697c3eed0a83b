"""I04: importing doesn't touch the network."""

from __future__ import annotations

from prime_core.check.importing import each_module, events
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Look at audit events of sockets."""
    return await each_module(
        subject,
        lambda seen: (
            f"touches the network: {events(seen, 'network')}" if events(seen, "network") else ""
        ),
    )


RULE = Rule(
    id="I04",
    name="import-network",
    title="Importing the module doesn't touch the network",
    level="bronze",
    cost="import",
    why="Machines without network must be able to list and load plugins, and nobody expects an "
    "import to fetch.",
    fix="fetch in the factory, through prime_core.api.datasets, which pins a digest",
    bad='DATA = urllib.request.urlopen("https://example.org/words.txt").read()',
    good="def make(params, context):\n    return WordsEnvironment(load_tasks(params, context))",
    examine=examine,
)
