"""The order is a bijection for every size and seed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prime_env_arithmetic.order import Permutation


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 700), st.integers(0, 2**63 - 1))
def test_order_is_a_bijection(size: int, seed: int) -> None:
    order = Permutation(size, seed)
    assert sorted(order[i] for i in range(size)) == list(range(size))


def test_order_depends_on_the_seed() -> None:
    first, second = Permutation(1000, 0), Permutation(1000, 1)
    assert [first[i] for i in range(9)] != [second[i] for i in range(9)]


def test_huge_ranges_stay_inside() -> None:
    order = Permutation(10**54, 5)
    seen = [order[i] for i in range(100)]
    assert len(set(seen)) == 100
    assert max(seen) < 10**54


def test_positions_outside_are_refused() -> None:
    with pytest.raises(IndexError):
        Permutation(3, 0)[3]
    with pytest.raises(ValueError, match="permutation of 0"):
        Permutation(0, 0)
