"""Sampling noise as a pure function of (seed, position, token), with random access in the token.

Inference engines add it to the logits divided by the temperature and take the largest; the
validator repeats that for single tokens. It depends on neither batch, order nor vocabulary size.
Shapes: B rows, V tokens, N blocks of 4 tokens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prime_core.api.errors import EngineError
from prime_core.assignment.philox import Words, philox4x32

# Keeps these words apart from any other use of Philox4x32 under the same seed ("GUMB").
DOMAIN = 0x47554D42
# Largest minus smallest value is 20.19; a token further than this below the best can't win.
GUMBEL_SPAN = 20.3
# Blocks computed at once: six uint64 arrays of this length stay in a core's cache.
_CHUNK = 16384
# Above this share of candidates, whole blocks (4 tokens a cipher) cost less than single tokens.
_DENSE = 0.125


def gumbel_words(
    seeds: NDArray[np.int64], positions: NDArray[np.int64], token_ids: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """The 24-bit words k behind the noise, exact on every machine.

    k is the high 24 bits of word (token mod 4) of the Philox4x32-10 block with key (seed mod 2**32,
    seed div 2**32) and counter (token div 4, position, 0, 0x47554D42).

    Args:
        seeds: [B], in [0, 2**63).
        positions: [B], in [0, 2**32): the index of the model token in its rollout, over all turns.
        token_ids: [V] for all rows, or [B, V] with each row's own; in [0, 2**34).

    Returns:
        [B, V] values below 2**24.
    """
    seeds_B, positions_B, ids = (np.asarray(each) for each in (seeds, positions, token_ids))
    assert seeds_B.ndim == positions_B.ndim == 1, "seeds and positions are [B]"
    assert seeds_B.shape == positions_B.shape, (seeds_B.shape, positions_B.shape)
    if seeds_B.size == 0 or ids.size == 0:
        return np.empty((seeds_B.size, ids.shape[-1]), np.uint32)
    assert seeds_B.min() >= 0, "a seed has 63 bits"
    assert positions_B.min() >= 0, "a position can't be negative"
    assert positions_B.max() < 2**32, "a position has 32 bits"
    assert ids.min() >= 0, "a token id can't be negative"
    assert ids.max() < 2**34, "a token id has 34 bits"
    if ids.ndim == 1:
        return _shared_ids(seeds_B, positions_B, ids)
    assert ids.shape[0] == seeds_B.shape[0], (ids.shape, seeds_B.shape)
    return _own_ids(seeds_B, positions_B, ids)


def gumbel_from_words(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """The noise of 24-bit words: -log(-log((k + 1/2) / 2**24)), between -2.86 and 17.33.

    Every step is float64, where the argument of the outer logarithm is exact; each logarithm is
    within one unit in the last place of float64 on any sound machine, and the result is rounded to
    float32 once. So two machines differ by one unit in the last place of float32 at most, and only
    where the exact value lies next to half-way between two float32 numbers.
    """
    u = words.astype(np.float64)
    u += 0.5
    u *= 2.0**-24
    for _ in range(2):
        np.log(u, out=u)
        np.negative(u, out=u)
    return u.astype(np.float32)


def gumbel(
    seeds: NDArray[np.int64], positions: NDArray[np.int64], token_ids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Standard Gumbel noise, [B, V]; arguments as `gumbel_words`."""
    words = gumbel_words(seeds, positions, token_ids)
    noise = np.empty(words.shape, np.float32)
    flat, out = words.reshape(-1), noise.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        out[start : start + _CHUNK] = gumbel_from_words(flat[start : start + _CHUNK])
    return noise


def gumbel_at(
    seeds: NDArray[np.int64], positions: NDArray[np.int64], token_ids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The noise of single tokens: three arrays [N] to [N]."""
    return gumbel(seeds, positions, np.asarray(token_ids)[:, None])[:, 0]


def gumbel_argmax(
    scaled_logits: NDArray[np.float32], seeds: NDArray[np.int64], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sample one token a row: the largest of logits / temperature + noise, added in float64.

    Only tokens within `GUMBEL_SPAN` of a row's best logit are looked at, as no other can win; equal
    sums go to the lowest token id.

    Args:
        scaled_logits: [B, V] float32, logits divided by the temperature; -inf excludes a token.
        seeds: [B].
        positions: [B].

    Returns:
        [B] token ids.

    Raises:
        EngineError: a row holds NaN, or nothing but -inf.
    """
    logits_BV = np.asarray(scaled_logits)
    best_B = logits_BV.max(axis=1)
    if np.isnan(best_B).any() or np.isneginf(best_B).any():
        raise EngineError(
            "logits hold NaN, or exclude every token",
            where=f"row {int(np.argmax(np.isnan(best_B) | np.isneginf(best_B)))}",
            fix="use dtype float32, or another attention implementation",
        )
    threshold_B = np.nextafter((best_B - np.float32(GUMBEL_SPAN)), np.float32(-np.inf))
    candidates_BV = logits_BV >= threshold_B[:, None]
    if np.count_nonzero(candidates_BV) > _DENSE * logits_BV.size:
        noise_BV = gumbel(seeds, positions, np.arange(logits_BV.shape[1]))
        chosen_B: NDArray[np.int64] = np.argmax(logits_BV.astype(np.float64) + noise_BV, axis=1)
        return chosen_B
    rows, tokens = np.nonzero(candidates_BV)
    sums = logits_BV[rows, tokens].astype(np.float64)
    sums += gumbel_at(np.asarray(seeds)[rows], np.asarray(positions)[rows], tokens)
    starts = np.searchsorted(rows, np.arange(logits_BV.shape[0]))
    winners = np.flatnonzero(sums == np.maximum.reduceat(sums, starts)[rows])
    _, first = np.unique(rows[winners], return_index=True)
    return tokens[winners[first]].astype(np.int64)


def _shared_ids(
    seeds_B: NDArray[np.int64], positions_B: NDArray[np.int64], ids_V: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Words of the same tokens in every row: each block is computed once for its four tokens."""
    first, count = int(ids_V[0]), ids_V.size
    contiguous = np.array_equal(ids_V, np.arange(first, first + count))
    if contiguous:
        blocks_N = np.arange(first >> 2, (first + count + 3) >> 2)
    else:
        blocks_N, block_of_V = np.unique(ids_V >> 2, return_inverse=True)
    words_BN4 = np.empty((seeds_B.size, blocks_N.size, 4), np.uint32)
    columns = min(blocks_N.size, _CHUNK)
    rows = max(1, _CHUNK // columns)
    for top in range(0, seeds_B.size, rows):
        here = slice(top, top + rows)
        for left in range(0, blocks_N.size, columns):
            there = slice(left, left + columns)
            block = _block(seeds_B[here, None], positions_B[here, None], blocks_N[None, there])
            for index, word in enumerate(block):
                words_BN4[here, there, index] = word
    words_BN4 >>= np.uint32(8)
    if contiguous:
        return words_BN4.reshape(seeds_B.size, -1)[:, first & 3 : (first & 3) + count]
    return np.asarray(words_BN4[:, block_of_V, ids_V & 3])


def _own_ids(
    seeds_B: NDArray[np.int64], positions_B: NDArray[np.int64], ids_BV: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Words of tokens that differ between rows: one block a token."""
    shape = ids_BV.shape
    flat = ids_BV.reshape(-1)
    row = np.repeat(np.arange(shape[0]), shape[1])
    words = np.empty(flat.size, np.uint32)
    for start in range(0, flat.size, _CHUNK):
        here = slice(start, start + _CHUNK)
        block = _block(seeds_B[row[here]], positions_B[row[here]], flat[here] >> 2)
        words[here] = np.choose(flat[here] & 3, block) >> np.uint64(8)
    return words.reshape(shape)


def _block(
    seeds: NDArray[np.int64], positions: NDArray[np.int64], blocks: NDArray[np.int64]
) -> tuple[Words, Words, Words, Words]:
    zero, domain = np.zeros(1, np.uint64), np.full(1, DOMAIN, np.uint64)
    key = seeds.astype(np.uint64)
    counter = (blocks.astype(np.uint64), positions.astype(np.uint64), zero, domain)
    return philox4x32(counter, (key & np.uint64(2**32 - 1), key >> np.uint64(32)))
