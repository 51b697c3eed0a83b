"""A small seeded `Rng` for authors' tests.

The engine hands plugins its own words (Philox, from the assignment); a plugin must work with any
`Rng`, so tests use this one, which needs nothing but Python.
"""

from __future__ import annotations

_WORD = (1 << 64) - 1


class SplitMixRng:
    """SplitMix64 (Steele, Lea, Flood 2014): equal seeds give equal words on every machine."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _WORD

    def word(self) -> int:
        """The next uniform 64-bit word."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        return mixed ^ (mixed >> 31)

    def below(self, n: int) -> int:
        """A uniform integer in [0, n); n >= 1."""
        if n < 1:
            raise ValueError(f"below({n}) has nothing to draw from")
        limit = (1 << 64) - (1 << 64) % n  # words above would favour the small remainders
        while (word := self.word()) >= limit:
            pass
        return word % n

    def uniform(self) -> float:
        """A uniform float in [0, 1), a multiple of 2**-53."""
        return float(self.word() >> 11) / (1 << 53)
