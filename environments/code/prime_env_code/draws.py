"""Seeded draws for procedural problems: SHA-256 of a key and a counter, equal on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any


class HashDraws:
    """Draws that depend on the key alone."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._count = 0

    def _word(self) -> int:
        self._count += 1
        block = hashlib.sha256(f"prime-env-code {self._key} {self._count}".encode()).digest()
        return int.from_bytes(block[:8], "big")

    def below(self, n: int) -> int:
        """A uniform integer in [0, n), without modulo bias."""
        limit = (1 << 64) - (1 << 64) % n
        while True:
            word = self._word()
            if word < limit:
                return word % n

    def between(self, low: int, high: int) -> int:
        """A uniform integer in [low, high]."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Any], count: int) -> list[Any]:
        """Different items, in a drawn order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]
