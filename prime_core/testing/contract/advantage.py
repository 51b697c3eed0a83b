"""What every advantage function keeps: equal rewards give exactly 0, better ones never less.

Authors inherit `AdvantageContract` and override `make_advantage`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import pytest

from prime_core.api import AdvantageFunction
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override
from prime_core.testing.rng import SplitMixRng


class AdvantageContract:
    """Inherit, and override `make_advantage`.

    Attributes:
        zero_mean: the advantages of a group sum to 0 (a baseline is subtracted).
        shift_invariant: adding one number to every reward changes nothing.
    """

    zero_mean: ClassVar[bool] = True
    shift_invariant: ClassVar[bool] = True

    @pytest.fixture
    def make_advantage(self) -> Callable[[], AdvantageFunction]:
        """A function that makes the advantage function anew."""
        made: Callable[[], AdvantageFunction] = override("make_advantage", "makes the function")
        return made

    @pytest.fixture
    def advantage(self, make_advantage: Callable[[], AdvantageFunction]) -> AdvantageFunction:
        """The advantage function under test."""
        return make_advantage()

    def test_has_every_member(self, advantage: AdvantageFunction) -> None:
        assert missing_members(advantage, [AdvantageFunction]) == []

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 16, 61])
    def test_equal_rewards_give_exactly_zero(self, advantage: AdvantageFunction, size: int) -> None:
        # 0.1 and 1/3: their mean over 3 or 7 need not be the number itself in floating point
        for reward in (0.0, 1.0, -1.0, 0.1, 1 / 3, -0.0003, 1e-30, 1e30):
            assert advantage.advantages([reward] * size) == [0.0] * size, reward

    def test_one_finite_number_per_reward(self, advantage: AdvantageFunction) -> None:
        for rewards in [*_groups(), [1.0, 1.0 + 1e-15], [0.0, 1e-300], [-1e15, 1e15]]:
            advantages = advantage.advantages(rewards)
            assert len(advantages) == len(rewards)
            assert all(math.isfinite(value) for value in advantages), rewards

    def test_a_better_reward_never_gets_less(self, advantage: AdvantageFunction) -> None:
        for rewards in _groups():
            pairs = sorted(zip(rewards, advantage.advantages(rewards), strict=True))
            values = [value for _, value in pairs]
            assert values == sorted(values), rewards

    def test_the_order_of_rewards_changes_nothing(self, advantage: AdvantageFunction) -> None:
        for rewards in _groups():
            turned = advantage.advantages(rewards[::-1])[::-1]
            assert advantage.advantages(rewards) == pytest.approx(turned, rel=1e-9, abs=1e-12)

    def test_advantages_sum_to_zero(self, advantage: AdvantageFunction) -> None:
        if not self.zero_mean:
            pytest.skip("it declares that its advantages have another mean")
        for rewards in _groups():
            assert sum(advantage.advantages(rewards)) == pytest.approx(0, abs=1e-6)

    def test_a_shift_changes_nothing(self, advantage: AdvantageFunction) -> None:
        if not self.shift_invariant:
            pytest.skip("it declares that it isn't shift invariant")
        for rewards in _groups():
            shifted = advantage.advantages([reward + 3.0 for reward in rewards])
            assert shifted == pytest.approx(advantage.advantages(rewards), rel=1e-6, abs=1e-6)


def _groups() -> list[list[float]]:
    """Groups of 2 to 16 rewards, of few values and of many."""
    rng = SplitMixRng(11)
    few = [[float(rng.below(2)) for _ in range(size)] for size in (2, 4, 8, 16)]
    many = [[rng.uniform() - 0.5 for _ in range(size)] for size in (2, 3, 8, 16)]
    return [*few, *many]
