"""I03: importing loads no deep-learning framework."""

from __future__ import annotations

from prime_core.check.importing import each_module
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject

HEAVY = frozenset(
    {"torch", "tensorflow", "jax", "transformers", "vllm", "datasets", "flax", "keras"}
)


async def examine(subject: Subject) -> Result:
    """Look at the modules that the import added."""
    return await each_module(
        subject,
        lambda seen: (
            "loads " + ", ".join(sorted(HEAVY & set(seen["modules"])))
            if HEAVY & set(seen["modules"])
            else ""
        ),
    )


RULE = Rule(
    id="I03",
    name="heavy-imports",
    title="Importing the module loads neither torch nor another framework of its size",
    level="bronze",
    cost="import",
    why="Hosts are many and run beside the engine; each would hold gigabytes that it never uses.",
    fix="import it inside the function that needs it",
    bad="import torch",
    good="def similarity(a, b):\n    import torch",
    examine=examine,
)
