"""Files that can't be judged just now for a reason of ours: each comes again after a pause.

The validator puts a file off when a store or a host is away, and goes on with others meanwhile. In
memory alone: a validator that starts again tries at once. A file that was put off `MOST` times has
had its turns if others are accepted meanwhile: what is broken is then nothing that they need.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prime_core.store.records import Key

FIRST_S = 1.0  # the pause doubles each time
LONGEST_S = 60.0
MOST = 30  # about half an hour


@dataclass(frozen=True, slots=True)
class _File:
    """How often a file was put off, until when, and how many were accepted by then."""

    times: int
    until: float
    accepted: int


class PutOff:
    """The files that wait for better times.

    Args:
        clock: replaced in tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._files: dict[Key, _File] = {}
        self._accepted = 0

    def put(self, key: Key) -> float:
        """Put a file off; for how many seconds."""
        times = self._files[key].times if key in self._files else 0
        pause = min(LONGEST_S, FIRST_S * 2.0 ** min(times, 16))
        self._files[key] = _File(times + 1, self._clock() + pause, self._accepted)
        return pause

    def skip(self, key: Key) -> None:
        """Never try a file again."""
        self._files[key] = _File(MOST, math.inf, self._accepted)

    def accepted(self) -> None:
        """Some file was accepted."""
        self._accepted += 1

    def is_stuck(self, key: Key) -> bool:
        """Whether those behind a file needn't wait for it any more."""
        return key in self._files and self._files[key].times >= MOST

    def is_hopeless(self, key: Key) -> bool:
        """Whether a file that fails once more has had its turns."""
        return self.is_stuck(key) and self._accepted > self._files[key].accepted

    def end(self, key: Key) -> None:
        """Forget a file."""
        self._files.pop(key, None)

    def first(self, keys: Iterable[Key]) -> Key | None:
        """The first file that isn't put off."""
        now = self._clock()
        waits = {key for key, file in self._files.items() if file.until > now}
        return next((key for key in keys if key not in waits), None)
