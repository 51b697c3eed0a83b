from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from prime_core.trainer.advantages import GroupNorm
from prime_core.trainer.plugin import GrpoParams, make_group_norm, prime_advantages, prime_losses

STDS = ("population", "sample", "none")


@given(
    reward=st.floats(-1e6, 1e6, width=32),
    size=st.integers(1, 64),
    dtype=st.sampled_from([np.float16, np.float32, np.float64, float]),
    std=st.sampled_from(STDS),
    epsilon=st.sampled_from([0.0, 1e-6, 1e-4]),
)
def test_equal_rewards_give_exactly_zero(reward, size, dtype, std, epsilon) -> None:
    with np.errstate(over="ignore"):
        value = dtype(reward)
    if not math.isfinite(value):
        return
    assert GroupNorm(std, epsilon).advantages([value] * size) == [0.0] * size


@given(
    rewards=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=24),
    std=st.sampled_from(STDS),
    seed=st.randoms(use_true_random=False),
)
def test_advantages_are_finite_sum_to_zero_and_travel_with_their_reward(rewards, std, seed) -> None:
    advantages = GroupNorm(std).advantages(rewards)
    assert all(map(math.isfinite, advantages))
    assert abs(sum(advantages)) <= 1e-6 * max(1.0, *(abs(a) for a in advantages)) * len(rewards)
    order = list(range(len(rewards)))
    seed.shuffle(order)
    shuffled = GroupNorm(std).advantages([rewards[i] for i in order])
    assert shuffled == pytest.approx([advantages[i] for i in order], rel=1e-12, abs=1e-300)


def test_each_kind_of_std_by_hand() -> None:
    rewards = [1.0, 0.0, 0.0, 0.0]
    assert GroupNorm("none").advantages(rewards) == [0.75, -0.25, -0.25, -0.25]
    population = GroupNorm("population", 0.0).advantages(rewards)
    assert population == pytest.approx([0.75 / math.sqrt(3 / 16), *[-0.25 / math.sqrt(3 / 16)] * 3])
    sample = GroupNorm("sample", 0.0).advantages(rewards)
    assert sample == pytest.approx([1.5, -0.5, -0.5, -0.5])


def test_rewards_that_differ_by_rounding_are_not_blown_up() -> None:
    assert max(map(abs, GroupNorm().advantages([0.1 + 0.2, 0.3, 0.3]))) < 1e-9


def test_differences_too_small_to_square_give_zero_not_a_crash() -> None:
    assert GroupNorm("sample", 0.0).advantages([0.0, 5e-324]) == [0.0, 0.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_reward_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        GroupNorm().advantages([bad, bad])


def test_plugins_are_registered_with_the_papers_defaults() -> None:
    (advantage,), (loss,) = prime_advantages(), prime_losses()
    assert (advantage.name, loss.name) == ("group_norm", "grpo")
    made = make_group_norm(advantage.params(), None)  # type: ignore[arg-type]
    assert made == GroupNorm("sample", 1e-6)
    assert loss.params() == GrpoParams(epsilon=0.2, delta=4.0)


@pytest.mark.parametrize("delta", [1.2, 1.0, float("nan")])
def test_delta_within_the_ppo_clip_is_refused_with_the_fix(delta: float) -> None:
    with pytest.raises(ValidationError, match="raise delta"):
        GrpoParams(epsilon=0.2, delta=delta)


def test_listing_the_plugins_loads_no_torch() -> None:
    code = (
        "import sys, prime_core.trainer.plugin as p; p.prime_losses()[0].params();"
        "p.make_group_norm(p.GroupNormParams(), None);"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
