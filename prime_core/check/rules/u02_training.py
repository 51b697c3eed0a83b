"""U02: a short GRPO run's reward rises."""

from __future__ import annotations

from prime_core.check.evidence import evidence, numbers, rises
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

LEAST_STEPS = 20


async def examine(subject: Subject) -> Result:
    """Compare the last quarter of the steps with the first."""
    found = await evidence(subject, "training")
    if isinstance(found, Result):
        return found
    rewards = numbers(found.get("rewards"), "rewards")
    if len(rewards) < LEAST_STEPS:
        return failed(Finding(f"{len(rewards)} steps are too few, {LEAST_STEPS} are the least"))
    rise, errors = rises(rewards)
    measures = {"steps": str(len(rewards)), "rise": f"{rise:.4f}, three errors {errors:.4f}"}
    if rise <= errors:
        return failed(
            Finding(f"the mean reward rose by {rise:.4f}, within {errors:.4f}"), **measures
        )
    return failed(**measures)


RULE = Rule(
    id="U02",
    name="training",
    title="The mean reward of a short GRPO run rises by more than three standard errors",
    level="gold",
    cost="train",
    why="A reward can be right in every single case and still not be learnable.",
    fix="run `prime-core check PATH --prove training --config RUN.toml`, and name the file",
    bad="[evidence]\n# no training",
    good='[evidence]\ntraining = "evidence/training.json"',
    kinds=("environment",),
    examine=examine,
)
