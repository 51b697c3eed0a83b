"""What a pool counts: calls, errors by kind, starts, and how busy its hosts are.

Written by the slots, read by `HostPool.metrics`. Times are seconds of the monotonic clock.
"""

from __future__ import annotations

import time
from collections import Counter

from prime_core.hosting.protocol import ERROR_KINDS


class Counters:
    """The counts of one pool."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._opened = time.monotonic()
        self._busy_s = 0.0
        self._running: dict[int, float] = {}
        self._numbers = 0
        self._calls: Counter[str] = Counter()
        self._items: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self.recycled: Counter[str] = Counter()  # by reason; the reason names thread or process
        self.retries = 0
        self.starts = 0
        self.failed_starts = 0

    def begin(self, call: str, items: int) -> int:
        """A host begins a request; returns the number for `end`."""
        self._numbers += 1
        self._running[self._numbers] = time.monotonic()
        self._calls[call] += 1
        return self._numbers

    def end(self, number: int) -> None:
        """A host ended a request."""
        self._busy_s += time.monotonic() - self._running.pop(number)

    def finished(self, call: str) -> None:
        """An item has its result."""
        self._items[call] += 1

    def error(self, kind: str) -> None:
        """An item failed, whether or not it's tried again."""
        self._errors[kind] += 1

    def recycle(self, reason: str) -> None:
        """A host is replaced because of what an item left behind."""
        self.recycled[reason] += 1

    def metrics(self, queue_length: int) -> dict[str, float]:
        """Everything as numbers: counts since the pool was opened, shares in [0, 1]."""
        now = time.monotonic()
        elapsed = max(now - self._opened, 1e-9)
        busy = self._busy_s + sum(now - began for began in self._running.values())
        return {
            "calls": float(self._calls.total()),
            "items": float(self._items.total()),
            "scores": float(self._items["score"]),
            "scores_per_second": self._items["score"] / elapsed,
            "retries": float(self.retries),
            "timeouts": float(self._errors["timeout"]),
            "crashes": float(self._errors["crash"]),
            **{f"errors_{kind}": float(self._errors[kind]) for kind in ERROR_KINDS},
            "restarts": float(max(0, self.starts - self._hosts)),
            "starts": float(self.starts),
            "failed_starts": float(self.failed_starts),
            "recycled": float(self.recycled.total()),
            "queue_length": float(queue_length),
            "busy_share": min(1.0, busy / (elapsed * self._hosts)),
        }
