"""The field arithmetic against schoolbook Horner: exact, for any number of points and chunks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from toploc_support import PRIME, horner

from prime_core.toploc.field import POINTS, evaluate, interpolate


def points(seed: int, chunks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.stack([rng.permutation(PRIME)[:POINTS] for _ in range(chunks)])
    y = rng.integers(0, PRIME, (chunks, POINTS))
    used = np.arange(POINTS) < rng.integers(0, POINTS + 1, chunks)[:, None]
    return x, y, used


@given(seed=st.integers(0, 2**32), chunks=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_polynomials_go_through_their_points(seed: int, chunks: int) -> None:
    x, y, used = points(seed, chunks)
    told = evaluate(interpolate(x, y, used), x)
    assert (told == y)[used].all()


def test_the_degree_is_the_least() -> None:
    x, y, used = points(3, 8)
    coefficients = interpolate(x, y, used)
    for chunk, count in enumerate(used.sum(axis=1)):
        assert not coefficients[chunk, count:].any()


def test_extreme_values_stay_exact() -> None:
    x = np.arange(PRIME - POINTS, PRIME)[None]
    y = np.full((1, POINTS), PRIME - 1)
    used = np.ones((1, POINTS), dtype=bool)
    assert interpolate(x, y, used).tolist() == [[PRIME - 1] + [0] * (POINTS - 1)]
    highest = np.full((1, POINTS), PRIME - 1)
    told = evaluate(highest, x)[0].tolist()
    assert told == [horner([PRIME - 1] * POINTS, each) for each in x[0].tolist()]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_evaluation_is_horner(seed: int) -> None:
    rng = np.random.default_rng(seed)
    coefficients = rng.integers(0, PRIME, (2, POINTS))
    x = rng.integers(0, PRIME, (2, POINTS))
    told = evaluate(coefficients, x)
    for chunk in range(2):
        expected = [horner(coefficients[chunk].tolist(), each) for each in x[chunk].tolist()]
        assert told[chunk].tolist() == expected


def test_chunks_do_not_influence_each_other() -> None:
    x, y, used = points(5, 6)
    together = interpolate(x, y, used)
    alone = [interpolate(x[i : i + 1], y[i : i + 1], used[i : i + 1])[0] for i in range(6)]
    np.testing.assert_array_equal(together, np.stack(alone))
