"""K02: A length target comes from the given words alone, and is positive."""

from __future__ import annotations

from prime_core.check.behaving import behaves
from prime_core.check.rule import Rule

RULE = Rule(
    id="K02",
    name="length_budget",
    title="A length target comes from the given words alone, and is positive",
    level="bronze",
    cost="run",
    why="Targets are part of the assignment, which every validator draws again.",
    fix="draw with the rng that is handed in",
    bad="return random.choice(self.targets)",
    good="return self.targets[rng.below(len(self.targets))]",
    kinds=("length_budget",),
    examine=behaves,
)
