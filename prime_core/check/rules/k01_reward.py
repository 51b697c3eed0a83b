"""K01: A reward is finite, repeats, and doesn't fall where the score rises."""

from __future__ import annotations

from prime_core.check.behaving import behaves
from prime_core.check.rule import Rule

RULE = Rule(
    id="K01",
    name="reward",
    title="A reward is finite, repeats, and doesn't fall where the score rises",
    level="bronze",
    cost="run",
    why="Rewards that depend on order or time can't be recomputed by a validator.",
    fix="work on the group alone; return one Reward a rollout",
    bad="return [Reward(rollout.score.value * random.random()) for rollout in group.rollouts]",
    good="return [Reward(rollout.score.value) for rollout in group.rollouts]",
    kinds=("reward",),
    examine=behaves,
)
