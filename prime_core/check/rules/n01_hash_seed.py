"""N01: the hash seed changes nothing."""

from __future__ import annotations

from prime_core.check.repeating import HASH_SEED, under
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Tasks and scores in a process with another hash seed."""
    return await under(subject, HASH_SEED)


RULE = Rule(
    id="N01",
    name="hash-seed",
    title="Tasks and scores are the same under every hash seed",
    level="silver",
    cost="run",
    why="Six of a hundred and five data sets of a public collection change with PYTHONHASHSEED, "
    "which is random by default: no two machines train on the same tasks.",
    fix="sort a set before its order matters; use hashlib instead of hash()",
    bad="words = list({word for word in text.split()})",
    good="words = sorted({word for word in text.split()})",
    kinds=("environment", "verifier"),
    examine=examine,
)
