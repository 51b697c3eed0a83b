from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from prime_core.api.errors import EngineError
from prime_core.assignment import (
    GUMBEL_SPAN,
    gumbel,
    gumbel_argmax,
    gumbel_at,
    gumbel_from_words,
    gumbel_words,
)

VECTORS = json.loads((Path(__file__).parent / "vectors" / "gumbel.json").read_text())
SEEDS = st.integers(0, 2**63 - 1)


def _word(seed: int, position: int, token: int) -> int:
    """The specification of docs/reference/seeds.md once more, in plain integers."""
    c0, c1, c2, c3 = token >> 2, position, 0, 0x47554D42
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (p1 >> 32) ^ c1 ^ k0,
            p1 & 0xFFFFFFFF,
            (p0 >> 32) ^ c3 ^ k1,
            p0 & 0xFFFFFFFF,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return (c0, c1, c2, c3)[token & 3] >> 8


def _ulps(a: NDArray[np.float32], b: NDArray[np.float32]) -> int:
    return int(np.abs(a.view(np.int32).astype(np.int64) - b.view(np.int32)).max())


def test_golden_words_are_exact_and_golden_values_within_one_ulp() -> None:
    for case in VECTORS["noise"]:
        seed, position = np.array([int(case["seed"], 16)]), np.array([int(case["position"])])
        tokens = np.array([int(token) for token in case["tokens"]])
        words = gumbel_words(seed, position, tokens)[0]
        assert words.tolist() == [int(k, 16) for k in case["k"]]
        bits = np.array([int(bits, 16) for bits in case["noise_bits"]], np.uint32)
        assert _ulps(gumbel(seed, position, tokens)[0], bits.view(np.float32)) <= 1
    for case in VECTORS["values"]:
        got = gumbel_from_words(np.array([int(case["k"], 16)], np.uint32))
        expected = np.array([int(case["bits"], 16)], np.uint32).view(np.float32)
        assert _ulps(got, expected) <= 1


@settings(deadline=None)
@given(SEEDS, st.integers(0, 2**32 - 1), st.integers(0, 2**34 - 1))
def test_words_follow_the_specification(seed: int, position: int, token: int) -> None:
    words = gumbel_words(np.array([seed]), np.array([position]), np.array([token]))
    assert int(words[0, 0]) == _word(seed, position, token)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(SEEDS, st.integers(0, 10_000)), min_size=1, max_size=5),
    st.integers(0, 100),
    st.integers(1, 60),
)
def test_noise_depends_on_nothing_but_seed_position_and_token(
    rows: list[tuple[int, int]], first: int, count: int
) -> None:
    seeds, positions = (np.array(column) for column in zip(*rows, strict=True))
    ids = np.arange(first, first + count)
    whole = gumbel(seeds, positions, ids)
    assert whole.dtype == np.float32
    shuffled = np.random.default_rng(0).permutation(ids)
    assert (gumbel(seeds, positions, shuffled) == whole[:, shuffled - first]).all()
    own = np.broadcast_to(ids, (len(rows), count))
    assert (gumbel(seeds, positions, own) == whole).all()
    assert (gumbel(seeds[:1], positions[:1], ids)[0] == whole[0]).all()
    padded = np.arange(0, first + count + 37)  # a larger vocabulary
    assert (gumbel(seeds, positions, padded)[:, first : first + count] == whole).all()
    assert (gumbel_at(seeds, positions, np.full(len(rows), first)) == whole[:, 0]).all()


def test_chunks_of_rows_and_columns_join_without_a_seam() -> None:
    seeds, positions = np.array([5, 2**62 + 1, 77]), np.array([0, 9, 4])
    large = gumbel_words(seeds, positions, np.arange(3, 70_003))  # more than one chunk of columns
    many = gumbel_words(np.repeat(seeds, 3000), np.repeat(positions, 3000), np.arange(3, 33))
    for row, (seed, position) in enumerate(zip(seeds, positions, strict=True)):
        for token in (3, 4, 65_535, 65_536, 65_540, 70_002):
            assert int(large[row, token - 3]) == _word(int(seed), int(position), token)
        assert (many[row * 3000 : (row + 1) * 3000] == large[row, :30]).all()


def test_nothing_in_gives_nothing_out() -> None:
    none = np.array([], np.int64)
    assert gumbel(none, none, np.arange(4)).shape == (0, 4)
    assert gumbel(np.array([1]), np.array([0]), none).shape == (1, 0)


def test_values_lie_in_the_documented_range() -> None:
    ends = gumbel_from_words(np.array([0, 2**24 - 1], np.uint32))
    assert -2.9 < ends[0] < -2.85
    assert 17.32 < ends[1] < 17.4
    assert ends[1] - ends[0] < GUMBEL_SPAN


def _worst_ulps(words: NDArray[np.uint32]) -> int:
    u = (words.astype(np.longdouble) + np.longdouble(0.5)) / np.longdouble(2**24)
    exact = (-np.log(-np.log(u))).astype(np.float32)
    return _ulps(gumbel_from_words(words), exact)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="needs an 80-bit long double")
def test_values_are_within_one_ulp_of_the_exact_ones() -> None:
    assert _worst_ulps(np.arange(0, 2**24, 101, dtype=np.uint32)) <= 1
    assert _worst_ulps(np.arange(6_171_000, 6_173_000, dtype=np.uint32)) <= 1  # where it is near 0
    for k in (0, 1, 6_172_078, 2**24 - 1):  # against the C library's logarithm as well
        scalar = np.float32(-math.log(-math.log((k + 0.5) / 2**24)))
        assert _ulps(gumbel_from_words(np.array([k], np.uint32)), np.array([scalar])) <= 1


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="needs an 80-bit long double")
def test_every_one_of_the_values_is_within_one_ulp_of_the_exact_one() -> None:
    for start in range(0, 2**24, 2**20):
        assert _worst_ulps(np.arange(start, start + 2**20, dtype=np.uint32)) <= 1


def test_noise_is_gumbel_distributed() -> None:
    noise = gumbel(np.arange(40), np.zeros(40, np.int64), np.arange(1000)).astype(np.float64)
    assert abs(noise.mean() - np.euler_gamma) < 0.03
    assert abs(noise.var() - math.pi**2 / 6) < 0.06
    for probability in (0.1, 0.5, 0.9):
        quantile = -math.log(-math.log(probability))
        assert abs((noise < quantile).mean() - probability) < 0.01


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 5.0, 30.0]), st.integers(1, 5))
def test_sampling_looks_at_candidates_alone_and_finds_the_same_token(
    seed: int, scale: float, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal((rows, 300)) * scale).astype(np.float32)
    logits[:, 290:] = -np.inf
    seeds, positions = rng.integers(0, 2**63 - 1, rows), rng.integers(0, 1000, rows)
    noise = gumbel(seeds, positions, np.arange(300))
    expected = np.argmax(logits.astype(np.float64) + noise, axis=1)
    assert gumbel_argmax(logits, seeds, positions).tolist() == expected.tolist()


def test_tokens_are_sampled_with_their_probabilities() -> None:
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    logits = np.tile(np.log(probabilities).astype(np.float32), (20_000, 1))
    tokens = gumbel_argmax(logits, np.full(20_000, 9), np.arange(20_000))
    share = np.bincount(tokens, minlength=4) / 20_000
    assert np.abs(share - probabilities).max() < 0.012


def test_equal_sums_go_to_the_lowest_token() -> None:
    logits = np.full((1, 100), -np.inf, np.float32)
    logits[0, [7, 40]] = np.inf
    assert gumbel_argmax(logits, np.array([1]), np.array([0])).tolist() == [7]


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_row_without_a_best_token_is_an_engine_error(bad: float) -> None:
    logits = np.zeros((3, 10), np.float32)
    logits[1] = bad
    with pytest.raises(EngineError, match="row 1"):
        gumbel_argmax(logits, np.arange(3), np.arange(3))
