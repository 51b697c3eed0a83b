"""K04: Equal rewards give advantage exactly 0, and all advantages are finite."""

from __future__ import annotations

from prime_core.check.behaving import behaves
from prime_core.check.rule import Rule

RULE = Rule(
    id="K04",
    name="advantage",
    title="Equal rewards give advantage exactly 0, and all advantages are finite",
    level="bronze",
    cost="run",
    why="A group without a difference has no signal; rounding must not make one.",
    fix="subtract the mean, and return zeros where all rewards are equal",
    bad="return [(r - mean) / (std + 1e-8) for r in rewards]   # mean of 0.1s is not 0.1",
    good="if len(set(rewards)) == 1:\n    return [0.0] * len(rewards)",
    kinds=("advantage",),
    examine=behaves,
)
