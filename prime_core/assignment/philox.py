"""Philox4x64-10 for assignments and Philox4x32-10 for sampling noise, and `SeededRng` on the first.

Used by `groups` and `gumbel` only. Salmon et al., Parallel random numbers: as easy as 1, 2, 3
(SC'11): tests hold both to that paper's known answers, and the first to numpy's raw words too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

ROUNDS = 10
# Multipliers and Weyl increments of the paper's tables.
_M64 = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_W64 = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_M32 = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_W32 = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_MASK64 = 2**64 - 1
_LOW32 = np.uint64(2**32 - 1)
_SHIFT32 = np.uint64(32)


def philox4x64(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """One block of Philox4x64-10: 4 words of counter and 2 of key to 4 random 64-bit words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = c0 * _M64[0], c2 * _M64[1]
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & _MASK64, (p0 >> 64) ^ c3 ^ k1, p0 & _MASK64
        k0, k1 = (k0 + _W64[0]) & _MASK64, (k1 + _W64[1]) & _MASK64
    return c0, c1, c2, c3


def philox4x32(
    counter: tuple[Words, Words, Words, Words], key: tuple[Words, Words]
) -> tuple[Words, Words, Words, Words]:
    """Blocks of Philox4x32-10, element by element.

    Args:
        counter: four arrays of 32-bit values held in uint64, of shapes that broadcast together.
        key: two of the same.

    Returns:
        Four new arrays of the broadcast shape, again 32-bit values held in uint64.
    """
    shape = np.broadcast_shapes(*(word.shape for word in (*counter, *key)))
    c0, c1, c2, c3 = (np.broadcast_to(word, shape).copy() for word in counter)
    k0, k1 = key
    p0, p1 = np.empty(shape, np.uint64), np.empty(shape, np.uint64)
    for _ in range(ROUNDS):
        np.multiply(c0, _M32[0], out=p0)
        np.multiply(c2, _M32[1], out=p1)
        np.right_shift(p1, _SHIFT32, out=c0)
        c0 ^= c1
        c0 ^= k0
        np.right_shift(p0, _SHIFT32, out=c2)
        c2 ^= c3
        c2 ^= k1
        np.bitwise_and(p1, _LOW32, out=c1)
        np.bitwise_and(p0, _LOW32, out=c3)
        k0, k1 = (k0 + _W32[0]) & _LOW32, (k1 + _W32[1]) & _LOW32
    return c0, c1, c2, c3


class SeededRng:
    """The raw words of Philox4x64-10 under one key and counter, and values mapped from them.

    The words are those of `numpy.random.Philox(key=key, counter=counter).random_raw()`: block j
    (from 0) is the cipher of the counter with its lowest word at j + 1. The mappings are our own,
    because numpy may change its distributions between versions. Implements the api's `Rng`.

    Args:
        key: two 64-bit words, lowest first.
        counter: four 64-bit words, lowest first; the lowest is 0.
    """

    def __init__(self, key: tuple[int, int], counter: tuple[int, int, int, int]) -> None:
        assert counter[0] == 0, "the lowest counter word numbers the blocks"
        self._words = _raw_words(key, counter)

    def word(self) -> int:
        """The next uniform 64-bit word."""
        return next(self._words)

    def below(self, n: int) -> int:
        """A uniform integer in [0, n), 1 <= n <= 2**64, without bias.

        Lemire's method (ACM TOMACS 29, 2019): the high word of word * n, redrawn while the low
        word is below 2**64 mod n.
        """
        assert 1 <= n <= 2**64, n
        product = self.word() * n
        if product & _MASK64 < n:
            threshold = 2**64 % n
            while product & _MASK64 < threshold:
                product = self.word() * n
        return product >> 64

    def uniform(self) -> float:
        """A uniform float in [0, 1): the word's high 53 bits times 2**-53."""
        return (self.word() >> 11) * 2.0**-53


def _raw_words(key: tuple[int, int], counter: tuple[int, int, int, int]) -> Iterator[int]:
    _, *rest = counter
    block = 0
    while True:
        block += 1
        yield from philox4x64((block, *rest), key)
