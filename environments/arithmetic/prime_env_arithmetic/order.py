"""A seeded permutation of [0, size) with random access: the order of the tasks.

Called by the task list; nothing is stored, so that a space of 10**18 problems costs nothing.
"""

from __future__ import annotations

import hashlib

ROUNDS = 4  # four rounds of a Feistel network mix every bit of both halves


class Permutation:
    """A bijection of [0, size) that depends on the seed alone.

    A balanced Feistel network over the next even number of bits, with SHA-256 as the round
    function; results outside the range are walked on until they fall inside it.
    """

    def __init__(self, size: int, seed: int) -> None:
        if size < 1:
            raise ValueError(f"a permutation of {size} things")
        self.size = size
        self._half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
        self._half_bytes = (self._half_bits + 7) // 8
        self._mask = (1 << self._half_bits) - 1
        self._keys = [
            hashlib.sha256(f"prime-env-arithmetic order {seed} {i}".encode()).digest()
            for i in range(ROUNDS)
        ]

    def __getitem__(self, position: int) -> int:
        """The element at a position in [0, size)."""
        if not 0 <= position < self.size:
            raise IndexError(position)
        value = self._encrypt(position)
        while value >= self.size:
            value = self._encrypt(value)
        return value

    def _encrypt(self, value: int) -> int:
        left, right = value >> self._half_bits, value & self._mask
        for key in self._keys:
            word = hashlib.sha256(key + right.to_bytes(self._half_bytes, "little")).digest()
            left, right = right, left ^ (int.from_bytes(word, "little") & self._mask)
        return (left << self._half_bits) | right
