"""Files that can't be judged just now for a reason of ours: each comes again after a pause.

The validator puts a file off when a store or a host is away, and goes on with others meanwhile. In
memory alone: a validator that starts again tries at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prime_core.store.records import Key

FIRST_S = 1.0  # the pause doubles each time
LONGEST_S = 60.0


class PutOff:
    """The files that wait for better times.

    Args:
        clock: replaced in tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[Key, tuple[int, float]] = {}  # times put off, and until when

    def put(self, key: Key) -> float:
        """Put a file off; for how many seconds."""
        times = self._until[key][0] if key in self._until else 0
        pause = min(LONGEST_S, FIRST_S * 2.0 ** min(times, 16))
        self._until[key] = (times + 1, self._clock() + pause)
        return pause

    def end(self, key: Key) -> None:
        """Forget a file."""
        self._until.pop(key, None)

    def first(self, keys: Iterable[Key]) -> Key | None:
        """The first file that isn't put off."""
        now = self._clock()
        return next((key for key in keys if self._until.get(key, (0, now))[1] <= now), None)
