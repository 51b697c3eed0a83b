"""Counters of one process as Prometheus text, and how often one address may ask.

Every shardcast process holds one `Counters`; it names no address of anybody, so that whoever reads
it learns of nobody.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_ADDRESSES = 10_000


class Counters:
    """Named numbers; `add` counts up, `set` replaces. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, float] = {}
        self._gauges: set[str] = set()

    def add(self, name: str, amount: float = 1) -> None:
        """Count up; `name` may carry labels: `requests_total{status="200"}`."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Replace a gauge."""
        with self._lock:
            self._values[name] = value
            self._gauges.add(name)

    def __getitem__(self, name: str) -> float:
        """A counter's value, 0 before it was counted."""
        with self._lock:
            return self._values.get(name, 0)

    def text(self) -> str:
        """Prometheus text format 0.0.4."""
        with self._lock:
            values = sorted(self._values.items())
        lines: list[str] = []
        typed: set[str] = set()
        for name, value in values:
            family = name.partition("{")[0]
            if family not in typed:
                typed.add(family)
                kind = "gauge" if name in self._gauges else "counter"
                lines.append(f"# TYPE prime_shardcast_{family} {kind}")
            lines.append(f"prime_shardcast_{name} {value:.17g}")
        return "\n".join(lines) + "\n"


class RateLimit:
    """A token bucket an address; the least recently seen addresses are forgotten.

    Args:
        per_s: requests a second that one address may keep up; 0 for no limit.
        clock: monotonic seconds; replaced in tests.
    """

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._clock = per_s, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Whether one more request is let in; two seconds' worth may come at once."""
        if self._per_s <= 0:
            return True
        now = self._clock()
        tokens, since = self._buckets.pop(address, (2 * self._per_s, now))
        tokens = min(2 * self._per_s, tokens + (now - since) * self._per_s)
        self._buckets[address] = (max(0.0, tokens - 1), now)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return tokens >= 1
