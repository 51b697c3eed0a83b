from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.assignment import SeededRng
from prime_core.assignment.philox import philox4x32, philox4x64

VECTORS = json.loads((Path(__file__).parent / "vectors" / "philox.json").read_text())
U64 = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("case", VECTORS["philox4x64_10"])
def test_philox4x64_gives_the_published_words(case: dict[str, list[str]]) -> None:
    counter, key, words = ([int(w, 16) for w in case[k]] for k in ("counter", "key", "words"))
    assert list(philox4x64(counter, key)) == words


@pytest.mark.parametrize("case", VECTORS["philox4x32_10"])
def test_philox4x32_gives_the_published_words(case: dict[str, list[str]]) -> None:
    c0, c1, c2, c3 = (np.array([int(w, 16)], np.uint64) for w in case["counter"])
    k0, k1 = (np.array([int(w, 16)], np.uint64) for w in case["key"])
    words = philox4x32((c0, c1, c2, c3), (k0, k1))
    assert [int(word[0]) for word in words] == [int(w, 16) for w in case["words"]]


@settings(deadline=None)
@given(st.tuples(U64, U64), st.tuples(U64, U64, U64))
def test_raw_words_are_those_of_numpy(key: tuple[int, int], rest: tuple[int, int, int]) -> None:
    rng = SeededRng(key, (0, *rest))
    theirs = np.random.Philox(
        key=np.array(key, np.uint64), counter=np.array((0, *rest), np.uint64)
    ).random_raw(11)
    assert [rng.word() for _ in range(11)] == theirs.tolist()


@settings(deadline=None)
@given(U64, st.integers(1, 2**64))
def test_below_stays_below(seed: int, n: int) -> None:
    rng = SeededRng((seed, 0), (0, 0, 0, 0))
    assert all(0 <= rng.below(n) < n for _ in range(4))


class _Words(SeededRng):
    """Words given by a test."""

    def __init__(self, words: list[int]) -> None:
        self._words = iter(words)


def test_below_redraws_exactly_the_words_that_would_bias_it() -> None:
    # With n = 2**63 + 1, 2**64 mod n is 2**63 - 1 and a word w has low part w * n mod 2**64.
    n = 2**63 + 1
    threshold = 2**64 % n
    low = [w for w in (0, 1, 2, 3, 5, 8, 13) if (w * n) % 2**64 < threshold]
    assert low, "the case must hold words to be redrawn"
    kept = next(w for w in range(1, 100) if (w * n) % 2**64 >= threshold)
    assert _Words([*low, kept]).below(n) == (kept * n) >> 64


def test_below_and_uniform_look_uniform() -> None:
    rng = SeededRng((1, 2), (0, 0, 0, 0))
    counts = Counter(rng.below(6) for _ in range(6000))
    # chi-squared with 5 degrees of freedom: 20.5 is its 0.999 quantile; the words are fixed.
    assert sum((counts[face] - 1000) ** 2 / 1000 for face in range(6)) < 20.5
    values = [rng.uniform() for _ in range(4000)]
    assert min(values) >= 0
    assert max(values) < 1
    assert abs(sum(values) / 4000 - 0.5) < 0.02
    assert all(value * 2**53 == int(value * 2**53) for value in values)
