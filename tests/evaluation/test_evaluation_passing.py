"""pass@k against counting by hand, and intervals against the truth of worlds that are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.evaluation.interval import clustered_wilson, wilson
from prime_core.evaluation.passing import (
    default_ks,
    estimate_mean,
    estimate_pass_at_k,
    pass_at_k,
)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_pass(samples: int, data: st.DataObject) -> None:
    passes = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    solved = [True] * passes + [False] * (samples - passes)
    draws = list(itertools.combinations(solved, k))
    share = sum(any(draw) for draw in draws) / len(draws)
    assert pass_at_k(samples, passes, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_k_is_exact_at_the_ends_and_for_large_counts() -> None:
    assert pass_at_k(8, 0, 8) == 0.0
    assert pass_at_k(8, 8, 1) == 1.0
    assert pass_at_k(10_000, 3, 5_000) == pytest.approx(1 - 1 / 8, abs=1e-3)
    for wrong in ((4, 1, 5), (4, 5, 1), (4, 1, 0), (4, -1, 1)):
        with pytest.raises(ValueError, match="pass@"):
            pass_at_k(*wrong)


def test_tasks_with_too_few_completions_are_left_out() -> None:
    found = estimate_pass_at_k([(4, 2), (1, 1), (0, 0)], 2)
    assert found.tasks == 1
    assert found.mean == pytest.approx(5 / 6)
    nothing = estimate_pass_at_k([(1, 1)], 2)
    assert (nothing.mean, nothing.low, nothing.high, nothing.tasks) == (None, 0.0, 1.0, 0)
    assert default_ks(8) == [1, 2, 4, 8]
    assert default_ks(6) == [1, 2, 4, 6]
    assert default_ks(0) == [1]


def test_a_mean_is_in_the_environments_range() -> None:
    found = estimate_mean([-1.0, 1.0, 1.0, 1.0], 4, (-1.0, 1.0))
    assert found.mean == 0.5
    assert -1 < found.low < 0.5 < found.high < 1
    assert estimate_mean([], 0, (-1.0, 1.0)).low == -1.0
    assert estimate_mean([2.0], 1, (2.0, 2.0)).high == 2.0


def test_single_draws_give_the_usual_wilson_interval() -> None:
    found = clustered_wilson([1.0] * 30 + [0.0] * 70, 100)
    assert found == pytest.approx(wilson(0.3, 100), rel=0.02)
    assert clustered_wilson([0.0] * 20, 160) == wilson(0.0, 20)
    assert clustered_wilson([], 0) == (0.0, 1.0)


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.3), (2.0, 5.0), (20.0, 20.0)])
@pytest.mark.parametrize("k", [1, 4])
def test_intervals_hold_the_truth_as_often_as_they_say(a: float, b: float, k: int) -> None:
    """Tasks of very different, different and equal difficulty; 60 tasks of 8 samples each."""
    rng = np.random.default_rng(17)
    truth = 1 - np.mean((1 - np.random.default_rng(1).beta(a, b, 200_000)) ** k)
    held, widths = 0, []
    for _ in range(400):
        passes = rng.binomial(8, rng.beta(a, b, 60))
        found = estimate_pass_at_k([(8, int(count)) for count in passes], k)
        held += found.low <= truth <= found.high
        widths.append(found.high - found.low)
    assert held / 400 >= 0.92
    low, high = wilson(float(truth), 60)
    assert np.mean(widths) <= 1.05 * (high - low)  # never wider than one draw a task would give
