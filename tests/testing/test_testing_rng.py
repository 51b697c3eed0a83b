"""The seeded words of authors' tests."""

from __future__ import annotations

import pytest

from prime_core.api import Rng
from prime_core.testing.rng import SplitMixRng


def test_words_are_those_of_the_paper():
    """SplitMix64's published sequence from seed 1234567."""
    rng: Rng = SplitMixRng(1234567)
    assert [rng.word() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_draws_stay_below_and_reach_everything():
    rng = SplitMixRng(0)
    assert {rng.below(3) for _ in range(100)} == {0, 1, 2}
    assert rng.below(1) == 0
    with pytest.raises(ValueError, match="nothing to draw"):
        rng.below(0)


def test_floats_are_multiples_of_two_to_the_minus_53():
    rng = SplitMixRng(1)
    values = [rng.uniform() for _ in range(200)]
    assert all(0 <= value < 1 and value * 2**53 == int(value * 2**53) for value in values)
    assert 0.4 < sum(values) / 200 < 0.6
