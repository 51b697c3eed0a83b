"""What every reward function keeps: one finite reward a rollout, whatever their order.

Authors inherit `RewardFunctionContract` and override `make_reward`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from prime_core.api import (
    Completion,
    Message,
    Reward,
    RewardFunction,
    Score,
    ScoredGroup,
    ScoredRollout,
    Task,
)
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override
from prime_core.testing.rng import SplitMixRng


def scored_rollout(value: float, token_count: int, status: str = "scored") -> ScoredRollout:
    """A rollout of that many tokens with that score."""
    completion = Completion(
        text="answer", messages=(Message("assistant", "answer"),), token_count=token_count
    )
    assert status in ("scored", "invalid_output")
    score = Score(value) if status == "scored" else Score(value, "invalid_output")
    return ScoredRollout(completion, score)


def scored_group(
    rollouts: Sequence[ScoredRollout], length_budget: int | None = None, step: int = 0
) -> ScoredGroup:
    """A group of one plain task."""
    task = Task(id="t", prompt=(Message("user", "2+2"),), gold="4")
    return ScoredGroup(task, tuple(rollouts), length_budget, step)


class RewardFunctionContract:
    """Inherit, and override `make_reward`; override `groups` for a reward that reads more.

    Attributes:
        rises_with_score: of two rollouts that differ in the score alone, the better one never
            gets less.
    """

    rises_with_score: ClassVar[bool] = True

    @pytest.fixture
    def make_reward(self) -> Callable[[], RewardFunction]:
        """A function that makes the reward function anew."""
        made: Callable[[], RewardFunction] = override("make_reward", "makes the reward function")
        return made

    @pytest.fixture
    def reward_function(self, make_reward: Callable[[], RewardFunction]) -> RewardFunction:
        """The reward function under test."""
        return make_reward()

    @pytest.fixture
    def groups(self) -> list[ScoredGroup]:
        """Groups of 1 to 16 rollouts, with and without a length target."""
        rng = SplitMixRng(7)
        made = []
        for size in (1, 2, 8, 16):
            for budget in (None, 1, 200, 4000):
                rollouts = [
                    scored_rollout(rng.below(3) / 2, 1 + rng.below(3000)) for _ in range(size)
                ]
                rollouts[0] = scored_rollout(0.0, 1, "invalid_output")
                made.append(scored_group(rollouts, budget, step=rng.below(100)))
        return made

    def test_has_every_member(self, reward_function: RewardFunction) -> None:
        assert missing_members(reward_function, [RewardFunction]) == []

    def test_one_finite_reward_per_rollout(
        self, reward_function: RewardFunction, groups: list[ScoredGroup]
    ) -> None:
        for group in groups:
            rewards = reward_function.reward(group)
            assert len(rewards) == len(group.rollouts)
            for reward in rewards:
                assert isinstance(reward, Reward)
                assert math.isfinite(reward.total), f"{reward} isn't finite"
                assert all(math.isfinite(part) for part in reward.parts.values()), reward

    def test_every_rollout_has_the_same_parts(
        self, reward_function: RewardFunction, groups: list[ScoredGroup]
    ) -> None:
        for group in groups:
            names = {tuple(sorted(reward.parts)) for reward in reward_function.reward(group)}
            assert len(names) == 1, f"parts differ within a group: {names}"

    def test_rewards_repeat(
        self, make_reward: Callable[[], RewardFunction], groups: list[ScoredGroup]
    ) -> None:
        first, second = make_reward(), make_reward()
        once = [list(first.reward(group)) for group in groups]
        again = [list(second.reward(group)) for group in reversed(groups)]
        assert once == again[::-1]

    def test_the_order_of_rollouts_changes_nothing(
        self, reward_function: RewardFunction, groups: list[ScoredGroup]
    ) -> None:
        for group in groups:
            turned = scored_group(group.rollouts[::-1], group.length_budget, group.step)
            totals = [reward.total for reward in reward_function.reward(group)]
            back = [reward.total for reward in reward_function.reward(turned)][::-1]
            assert totals == pytest.approx(back, rel=1e-12, abs=1e-12)

    def test_a_better_score_never_pays_less(self, reward_function: RewardFunction) -> None:
        if not self.rises_with_score:
            pytest.skip("the reward declares that it doesn't rise with the score")
        for budget in (None, 50, 400):
            pair = [scored_rollout(0.0, 100), scored_rollout(1.0, 100)]
            low, high = reward_function.reward(scored_group(pair, budget))
            assert low.total <= high.total, f"0 pays {low}, 1 pays {high}, budget {budget}"
