"""Which shards of a version wait, which are under way, and who may take one over.

`download`'s threads share one `Flights`. A shard is under way once at a time: whoever takes over a
slow one cancels it first, so that a relay can't write over bytes that were checked.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TAKE_OVER = 4.0  # times the median of those that have landed: a transfer that lasts longer is slow
NEAR = 0.75
_SETTLED_S = 1.0  # and at least so long


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
    whole: bool = False  # no delta is asked for any more
    taken_over: bool = False  # once: where all are slow, taking over again and again is waste

    @property
    def near(self) -> bool:
        """Whether it's nearly there, so that the next may start."""
        return self.received >= NEAR * self.size


class Flights:
    """The shards of one version between its messages and its file.

    One shard flies alone, then two, and so on; another starts when one of them is nearly there.
    Shards that share a link all land at its end, and whoever is further down the tree waits for
    the first.

    Args:
        far: how many may be far from their end at once, by default any number.
    """

    def __init__(self, far: int = 1000) -> None:
        self._at_once, self._far = 1, far
        self._condition = threading.Condition()
        self._waiting: dict[int, Flight] = {}
        self._flying: dict[int, Flight] = {}
        self._over = False
        self._durations: list[float] = []

    def add(self, index: int, size: int) -> None:
        """A line has come: its shard may be fetched."""
        with self._condition:
            self._waiting[index] = Flight(index, size)
            self._condition.notify()

    def take(self, replaceable: Callable[[Flight], bool]) -> Flight | None:
        """The next shard to fetch; None once it's over. Waits for one.

        Args:
            replaceable: whether another relay than the flight's own could be asked.
        """
        with self._condition:
            while not self._over:
                if self._waiting and len(self._flying) < self._at_once and self._room():
                    flight = self._waiting.pop(min(self._waiting))
                    flight.address, flight.received, flight.cancelled = None, 0, False
                    self._flying[flight.index] = flight
                    return flight
                if not self._waiting:
                    self._cancel_slowest(replaceable)
                self._condition.wait(0.25)
            return None

    def advance(self, flight: Flight, count: int) -> None:
        """So many more bytes have come."""
        was_near = flight.near
        flight.received += count
        if flight.near and not was_near:
            with self._condition:
                self._condition.notify()

    def back(self, flight: Flight) -> None:
        """It failed or was cancelled: somebody fetches it again."""
        with self._condition:
            del self._flying[flight.index]
            self._waiting[flight.index] = flight
            self._at_once += 1  # a relay that keeps one waiting must not keep all waiting
            self._condition.notify()

    def landed(self, flight: Flight) -> None:
        """It's in the file, and was checked."""
        with self._condition:
            del self._flying[flight.index]
            self._durations.append(time.monotonic() - flight.since)
            self._at_once += 1
            self._condition.notify(2)

    def end(self) -> None:
        """Nothing more is to be fetched; cancels what flies."""
        with self._condition:
            self._over = True
            for flight in self._flying.values():
                flight.cancelled = True
            self._condition.notify_all()

    def _room(self) -> bool:
        return sum(not flight.near for flight in self._flying.values()) < self._far

    def _cancel_slowest(self, replaceable: Callable[[Flight], bool]) -> None:
        """With nothing else left to do: have the slowest flight start again elsewhere."""
        if not self._durations:
            return
        now = time.monotonic()
        usual = max(TAKE_OVER * statistics.median(self._durations), _SETTLED_S)
        slow = [
            (now - flight.since, flight.index)
            for flight in self._flying.values()
            if flight.address is not None and not flight.taken_over and replaceable(flight)
        ]
        if slow and max(slow)[0] > usual:
            flight = self._flying[max(slow)[1]]
            assert flight.address is not None
            flight.cancelled = flight.taken_over = True
            flight.avoid[flight.address] = now + 10 * usual
