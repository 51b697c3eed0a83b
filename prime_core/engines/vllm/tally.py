"""What vLLM says of itself, carried over its restarts: sums go on, and peaks are kept.

Used by the driver's thread; `VllmEngine.figures` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

# They count up in a child's life, which begins them at 0.
SUMS = ("preemptions", "cached_tokens", "steps", "tokens")
# They hold for one step. Whoever logs them asks between two batches, when all of them are 0, so the
# highest since the weights were loaded is what is shown.
PEAKS = ("running", "waiting", "kv_cache_usage")


class Tally:
    """Figures over all lives of vLLM."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self.figures: dict[str, float] = {}

    def begin_life(self) -> None:
        """A child was started: its sums come on top of those before."""
        self._before = {name: self.figures[name] for name in SUMS if name in self.figures}

    def begin_peaks(self) -> None:
        """Weights were loaded."""
        self.figures |= {name: 0.0 for name in PEAKS if name in self.figures}

    def take(self, said: Mapping[str, float]) -> None:
        """The figures of a step."""
        found = dict(said)
        for name in SUMS:
            if name in found:
                found[name] += self._before.get(name, 0.0)
        for name in PEAKS:
            if name in found:
                found[name] = max(found[name], self.figures.get(name, 0.0))
        self.figures = {**self.figures, **found}
