"""Which shards of a version wait, which are under way, and who may take one over.

`download`'s threads share one `Flights`. A shard is under way once at a time: whoever takes over a
slow one cancels it first, so that a relay can't write over bytes that were checked.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from blake3 import blake3

NEAR = 0.75
FAR_SLOWER, LONG_S = 8.0, 30.0
_SETTLED_S = 0.25  # before that nobody knows how fast a transfer is
_LOOK_S = 0.05
_ASIDE_S = 10.0  # a relay isn't asked again so soon for a shard that was taken from it


@dataclass(frozen=True, slots=True)
class Part:
    """The front of a shard as one relay gave it: how many bytes, and their BLAKE3."""

    address: str
    size: int
    digest: bytes


@dataclass(slots=True)
class Flight:
    """One shard on its way.

    Attributes:
        avoid: relays that needn't be asked for it before the given monotonic second.
        aside: the same of the last takeover alone: it left somebody to ask.
        start: bytes that were there when the transfer under way began.
        front: what an earlier relay gave of it, where its transfer was taken over.
        taken_from: relays, each once: where all are slow, more would be waste.
        doubt: who gave bytes that made a wrong shard together: the front, and the other's address.
    """

    index: int
    size: int
    avoid: dict[str, float] = field(default_factory=dict)
    aside: dict[str, float] = field(default_factory=dict)
    address: str | None = None
    since: float = 0.0
    start: int = 0
    received: int = 0
    digest: blake3 = field(default_factory=blake3)
    cancelled: bool = False
    whole: bool = False  # no delta is asked for any more
    taken_from: set[str] = field(default_factory=set)
    front: Part | None = None
    doubt: tuple[Part, str] | None = None

    @property
    def near(self) -> bool:
        """Whether it's nearly there, so that the next may start."""
        return self.received >= NEAR * self.size

    def avoided(self, now: float) -> set[str]:
        """Relays that needn't be asked for it now."""
        both = (*self.avoid.items(), *self.aside.items())
        return {address for address, until in both if until > now}

    def left_s(self, now: float) -> float:
        """Seconds that it will still take at its pace so far; none where that can't be told yet."""
        if self.address is None or now - self.since < _SETTLED_S:
            return 0.0
        came = self.received - self.start
        return (self.size - self.received) * (now - self.since) / came if came else math.inf


# The relays that would not bring the rest of a flight sooner than so many seconds; None where none
# would.
Slower = Callable[[Flight, float], Collection[str] | None]


class Flights:
    """The shards of one version between its messages and its file.

    One shard flies alone, then two, and so on; another starts when one of them is nearly there.
    Shards that share a link all land at its end, and whoever is further down the tree waits for
    the first.

    Args:
        far: how many may be far from their end at once, by default any number.
        first: how many begin: one a link.
        clock: monotonic seconds; replaced in tests.
    """

    def __init__(
        self, far: int = 1000, *, first: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._at_once, self._far, self._clock = first, far, clock
        self._condition = threading.Condition()
        self._waiting: dict[int, Flight] = {}
        self._flying: dict[int, Flight] = {}
        self._over = False

    def add(self, index: int, size: int) -> None:
        """A line has come: its shard may be fetched."""
        with self._condition:
            self._waiting[index] = Flight(index, size)
            self._condition.notify()

    def take(self, slower: Slower) -> Flight | None:
        """The next shard to fetch; None once it's over. Waits for one."""
        with self._condition:
            while not self._over:
                if self._waiting and len(self._flying) < self._at_once and self._room():
                    flight = self._waiting.pop(min(self._waiting))
                    flight.address, flight.cancelled = None, False
                    if flight.front is None:
                        flight.received, flight.digest = 0, blake3()
                    flight.start = flight.received
                    self._flying[flight.index] = flight
                    return flight
                if not self._waiting:
                    self.take_over(slower)
                self._condition.wait(_LOOK_S if self._flying else _SETTLED_S)
            return None

    def advance(self, flight: Flight, count: int) -> None:
        """So many more bytes have come."""
        was_near = flight.near
        flight.received += count
        if flight.near and not was_near:
            with self._condition:
                self._condition.notify()

    def back(self, flight: Flight) -> None:
        """It failed or was cancelled: somebody fetches it again, from `front` on if there's one."""
        with self._condition:
            del self._flying[flight.index]
            self._waiting[flight.index] = flight
            self._at_once += 1  # a relay that keeps one waiting must not keep all waiting
            self._condition.notify()

    def landed(self, flight: Flight) -> None:
        """It's in the file, and was checked."""
        with self._condition:
            del self._flying[flight.index]
            self._at_once += 1
            self._condition.notify(2)

    def end(self) -> None:
        """Nothing more is to be fetched; cancels what flies."""
        with self._condition:
            self._over = True
            for flight in self._flying.values():
                flight.cancelled = True
            self._condition.notify_all()

    def take_over(self, slower: Slower) -> None:
        """With nothing else left to do: have a faster relay go on with the slowest flight."""
        now = self._clock()
        latest = sorted(
            (each for each in self._flying.values() if not each.cancelled),
            key=lambda each: each.left_s(now),
            reverse=True,
        )
        for flight in latest:
            left = flight.left_s(now)
            avoid = slower(flight, left) if left > 0 else None
            if avoid is not None:
                assert flight.address is not None
                flight.cancelled = True
                flight.taken_from.add(flight.address)
                flight.aside = dict.fromkeys(avoid, now + _ASIDE_S)
                return

    def relieve(self, slower: Slower) -> None:
        """Have a faster relay go on with the slowest flight, also where every thread has one.

        All may be at a relay that gives little more than the least. While shards wait, a flight may
        take eight times as long as elsewhere, or half a minute more: relays that share a link
        differ.
        """

        def far_slower(flight: Flight, left_s: float) -> Collection[str] | None:
            return slower(flight, max(left_s / FAR_SLOWER, left_s - LONG_S))

        with self._condition:
            self.take_over(far_slower if self._waiting else slower)

    def _room(self) -> bool:
        return sum(not flight.near for flight in self._flying.values()) < self._far
