"""Which shards of a version wait, which are under way, and who may take one over.

`download`'s threads share one `Flights`. A shard is under way once at a time: whoever takes over a
slow one cancels it first, so that a relay can't write over bytes that were checked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TAKE_OVER = 2.0  # a transfer that would last this many times longer than its restart elsewhere
_SETTLED_S = 0.5  # a rate measured over less says nothing


@dataclass(slots=True)
class Flight:
    """One shard on its way.

    Attributes:
        avoid: relays that needn't be asked for it before the given monotonic second.
    """

    index: int
    size: int
    avoid: dict[str, float] = field(default_factory=dict)
    address: str | None = None
    since: float = 0.0
    received: int = 0
    cancelled: bool = False

    def left_s(self, now: float) -> float | None:
        """Seconds it will still take at its rate so far; None where that isn't known."""
        elapsed = now - self.since
        if self.address is None or elapsed < _SETTLED_S:
            return None
        return (self.size - self.received) * elapsed / max(self.received, 1)


class Flights:
    """The shards of one version between its messages and its file."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: dict[int, Flight] = {}
        self._flying: dict[int, Flight] = {}
        self._over = False

    def add(self, index: int, size: int) -> None:
        """A line has come: its shard may be fetched."""
        with self._condition:
            self._waiting[index] = Flight(index, size)
            self._condition.notify()

    def take(self, estimate: Callable[[Flight], float | None]) -> Flight | None:
        """The next shard to fetch; None once it's over. Waits for one.

        Args:
            estimate: seconds that another relay than the flight's own would need for all of it;
                None where there is none.
        """
        with self._condition:
            while not self._over:
                if self._waiting:
                    flight = self._waiting.pop(min(self._waiting))
                    flight.address, flight.received, flight.cancelled = None, 0, False
                    self._flying[flight.index] = flight
                    return flight
                self._cancel_slowest(estimate)
                self._condition.wait(0.25)
            return None

    def back(self, flight: Flight) -> None:
        """It failed or was cancelled: somebody fetches it again."""
        with self._condition:
            del self._flying[flight.index]
            self._waiting[flight.index] = flight
            self._condition.notify()

    def landed(self, flight: Flight) -> None:
        """It's in the file, and was checked."""
        with self._condition:
            del self._flying[flight.index]

    def end(self) -> None:
        """Nothing more is to be fetched; cancels what flies."""
        with self._condition:
            self._over = True
            for flight in self._flying.values():
                flight.cancelled = True
            self._condition.notify_all()

    def _cancel_slowest(self, estimate: Callable[[Flight], float | None]) -> None:
        now = time.monotonic()
        slowest: tuple[float, Flight] | None = None
        for flight in self._flying.values():
            left = flight.left_s(now)
            if left is None or flight.cancelled:
                continue
            again = estimate(flight)
            if again is not None and left > TAKE_OVER * again + _SETTLED_S:
                slowest = max(slowest or (left, flight), (left, flight), key=lambda pair: pair[0])
        if slowest is not None:
            flight = slowest[1]
            flight.cancelled = True
            assert flight.address is not None
            flight.avoid[flight.address] = now + 4 * slowest[0]
