"""A small distribution of plugins that do not judge: one of each kind; every rule holds for it."""

from __future__ import annotations

from check_words import PYPROJECT, README, Files

PLUGINS: Files = {
    "pyproject.toml": PYPROJECT.replace("prime-env-words", "prime-words-plugins")
    .replace("prime_env_words", "prime_words_plugins")
    .replace(
        '"environment.words" = "prime_words_plugins"',
        "\n".join(
            f'"{kind}.words" = "prime_words_plugins"'
            for kind in ("reward", "length_budget", "data_filter", "advantage")
        ),
    ),
    "README.md": README.replace("env-words", "words-plugins"),
    "prime_words_plugins/__init__.py": '''\
"""One plugin of each kind that doesn't judge."""

import random

from prime_core.api import (
    AdvantageSpec, DataFilterSpec, Decision, Instruction, LengthBudgetSpec, Reward, RewardSpec,
    hookimpl,
)


class Plain:
    """The score is the reward."""

    def reward(self, group):
        """One a rollout."""
        return [Reward(each.score.value) for each in group.rollouts]


class Draw:
    """One of two targets."""

    def draw(self, rng, task, node_class, step):
        """By the given words."""
        return (100, 200)[rng.below(2)]

    def instruction(self, budget):
        """In words."""
        return Instruction(f"Think for {budget} tokens.")


class Solved:
    """Keeps tasks that were solved."""

    def keep_task(self, task, profile):
        """By the pass rate."""
        return Decision(profile is None or profile.pass_rate > 0, "never solved")


class Centred:
    """Minus the mean."""

    def advantages(self, rewards):
        """Zeros where all are equal."""
        if len(set(rewards)) == 1:
            return [0.0] * len(rewards)
        mean = sum(rewards) / len(rewards)
        return [each - mean for each in rewards]


@hookimpl
def prime_rewards():
    """Register."""
    return [RewardSpec(name="words", factory=lambda params, context: Plain(), summary="plain")]


@hookimpl
def prime_length_budgets():
    """Register."""
    return [LengthBudgetSpec(name="words", factory=lambda params, context: Draw(), summary="two")]


@hookimpl
def prime_data_filters():
    """Register."""
    return [DataFilterSpec(name="words", factory=lambda params, context: Solved(), summary="s")]


@hookimpl
def prime_advantages():
    """Register."""
    return [AdvantageSpec(name="words", factory=lambda params, context: Centred(), summary="c")]
''',
    "tests/test_words_contracts.py": "from prime_core.testing.contract import AdvantageContract\n",
}
