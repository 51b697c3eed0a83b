"""A seeded order of the problems of a template, with random access and no table.

Called by the task list. Invariant: every number of [0, size) comes exactly once.
"""

from __future__ import annotations

import hashlib

ROUNDS = 4


class Shuffle:
    """A bijection of [0, size) chosen by a text.

    The number is split into two digits of base ceil(sqrt(size)); each round adds a hash of one
    digit to the other. What falls outside the range is moved on until it falls inside.
    """

    def __init__(self, size: int, seed: str) -> None:
        self.size = size
        self._base = 1
        while self._base * self._base < size:
            self._base += 1
        self._keys = [hashlib.sha256(f"{seed}/{turn}".encode()).digest() for turn in range(ROUNDS)]

    def __getitem__(self, position: int) -> int:
        """The number at a position in [0, size)."""
        if not 0 <= position < self.size:
            raise IndexError(position)
        number = self._mix(position)
        while number >= self.size:
            number = self._mix(number)
        return number

    def _mix(self, number: int) -> int:
        first, second = divmod(number, self._base)
        for key in self._keys:
            word = hashlib.sha256(key + second.to_bytes(8, "little")).digest()[:8]
            first, second = second, (first + int.from_bytes(word, "little")) % self._base
        return first * self._base + second
