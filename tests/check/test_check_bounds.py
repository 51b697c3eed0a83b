"""Bounds of rates: exact binomial ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.check.bounds import at_least, exceeds, interval, lower_bound, upper_bound


def test_tails_are_those_of_the_binomial_distribution() -> None:
    assert at_least(0, 10, 0.3) == 1.0
    assert at_least(10, 10, 0.5) == pytest.approx(0.5**10)
    assert at_least(1, 3, 0.5) == pytest.approx(7 / 8)
    assert at_least(1.7, 3, 0.5) == pytest.approx(7 / 8)  # rounded down: never over-confident


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_bound_is_on_its_side_of_the_rate(case: tuple[int, int]) -> None:
    count, trials = case
    assert lower_bound(count, trials) <= count / trials <= upper_bound(count, trials)


def test_known_clopper_pearson_interval() -> None:
    # R: binom.test(3, 20)$conf.int
    assert lower_bound(3, 20, 0.975) == pytest.approx(0.03207094, abs=1e-6)
    assert upper_bound(3, 20, 0.975) == pytest.approx(0.3789268, abs=1e-6)
    assert interval(3, 20) == "3/20 = 15.00% [3.21%, 37.89%]"


def test_a_whole_population_needs_no_confidence() -> None:
    assert exceeds(3, 20, 0.1, whole=True)
    assert not exceeds(3, 20, 0.1, whole=False)
    assert not exceeds(2, 20, 0.1, whole=True)
    assert exceeds(20, 20, 0.1, whole=False, comparisons=100)
