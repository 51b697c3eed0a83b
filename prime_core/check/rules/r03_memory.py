"""R03: no completion makes the verifier run out of memory."""

from __future__ import annotations

from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject
from prime_core.check.typed import without


async def examine(subject: Subject) -> Result:
    """Score pathological completions in hosts of limited address space."""
    limit = subject.lab.limits.memory_mb
    return await without(subject, ("memory",), f"needs more than {limit} MiB")


RULE = Rule(
    id="R03",
    name="memory",
    title="No completion makes the verifier run out of 2 GiB of memory",
    level="silver",
    cost="run",
    why="Hosts share a machine with the engine; one that swells takes the others with it.",
    fix="limit the length, and the size of numbers, before working with them",
    bad="table = [[0] * len(text) for _ in text]",
    good="text = text[:1000]",
    kinds=("environment", "verifier"),
    examine=examine,
)
