"""K03: A filter's decision has a short reason, and repeats."""

from __future__ import annotations

from prime_core.check.behaving import behaves
from prime_core.check.rule import Rule

RULE = Rule(
    id="K03",
    name="data_filter",
    title="A filter's decision has a short reason, and repeats",
    level="bronze",
    cost="run",
    why="Reasons are counted and shown; a decision that changes drops other tasks at every start.",
    fix="decide by the arguments alone, and say why in a word",
    bad='return Decision(random.random() < 0.5, "")',
    good='return Decision(profile.pass_rate > 0, "never solved")',
    kinds=("data_filter",),
    examine=behaves,
)
