"""Shards under way: one first, then more; a slow one is taken over once, never by two at a time."""

from __future__ import annotations

import math
import threading
import time

import pytest
from blake3 import blake3

from prime_core.shardcast.flights import Flight, Flights, Part


def nobody(flight: Flight, left_s: float) -> None:
    """No relay is faster."""


def airborne(flights: Flights, address: str) -> Flight:
    flight = flights.take(nobody)
    assert flight is not None
    flight.address, flight.since = address, time.monotonic()
    return flight


def test_shards_leave_in_order_the_first_one_alone() -> None:
    flights = Flights()
    for index in (2, 0, 1, 3):
        flights.add(index, 100)
    first = airborne(flights, "a")
    assert first.index == 0
    taken: list[Flight] = []
    thread = threading.Thread(target=lambda: taken.append(airborne(flights, "a")))
    thread.start()
    thread.join(0.2)
    assert taken == []
    flights.landed(first)
    thread.join()
    assert taken[0].index == 1
    assert airborne(flights, "a").index == 2
    flights.end()
    assert flights.take(nobody) is None
    assert taken[0].cancelled


def test_the_next_shard_starts_when_one_is_nearly_there() -> None:
    flights = Flights(far=1)
    for index in range(4):
        flights.add(index, 100)
    flights.landed(airborne(flights, "a"))
    second = airborne(flights, "a")
    taken: list[Flight] = []
    thread = threading.Thread(target=lambda: taken.append(airborne(flights, "a")))
    thread.start()
    flights.advance(second, 74)
    thread.join(0.2)
    assert taken == []
    flights.advance(second, 1)
    thread.join()
    assert taken[0].index == 2
    flights.end()


def test_as_many_begin_as_there_are_links() -> None:
    flights = Flights(first=2)
    for index in range(3):
        flights.add(index, 100)
    assert [airborne(flights, each).index for each in "ab"] == [0, 1]


class Clock:
    """Monotonic seconds that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def flying(flights: Flights, index: int, address: str, clock: Clock) -> Flight:
    flights.add(index, 100)
    flight = airborne(flights, address)
    flight.since = clock.now
    return flight


def test_the_flight_that_lasts_longest_is_taken_over_by_whoever_is_faster() -> None:
    clock = Clock()
    flights = Flights(first=3, clock=clock)
    fast, slow, silent = (flying(flights, n, each, clock) for n, each in enumerate("abc"))
    asked: list[tuple[int, float]] = []

    def slower(flight: Flight, left_s: float) -> list[str] | None:
        asked.append((flight.index, left_s))
        return None if flight is silent else [str(flight.address), "d"]

    flights.take_over(slower)
    assert asked == [], "nobody knows yet how fast they are"
    clock.now += 2
    fast.received, slow.received = 80, 50
    flights.take_over(slower)
    assert asked == [(silent.index, math.inf), (slow.index, 2.0)]
    assert (fast.cancelled, slow.cancelled, silent.cancelled) == (False, True, False)
    assert slow.aside.keys() == slow.avoided(clock.now) == {"b", "d"}
    assert fast.left_s(clock.now) == 0.5


def test_takeovers_leave_somebody_to_ask() -> None:
    """Who was slower at one takeover may be the faster one at the next."""
    clock = Clock()
    flights = Flights(clock=clock)
    flight = flying(flights, 0, "a", clock)
    for address, slower in (("a", ["a", "b"]), ("c", ["a", "c"])):
        flight.address, flight.since, flight.cancelled = address, clock.now, False
        clock.now += 2
        flights.take_over(lambda flight, left_s, slower=slower: slower)
        assert flight.cancelled
        assert flight.avoided(clock.now) == set(slower)


@pytest.mark.parametrize("kept", [True, False])
def test_a_flight_goes_on_from_its_front_and_is_taken_from_a_relay_once(kept: bool) -> None:
    clock = Clock()
    flights = Flights(clock=clock)
    slow = flying(flights, 0, "a", clock)
    flights.advance(slow, 40)
    slow.digest.update(b"x" * 40)
    clock.now += 1
    flights.take_over(lambda flight, left_s: ["a"])
    assert slow.cancelled
    if kept:
        slow.front = Part("a", 40, slow.digest.digest())
    flights.back(slow)
    again = airborne(flights, "b")
    assert again is slow
    assert (again.cancelled, again.received, again.start) == (False, 40 * kept, 40 * kept)
    assert again.digest.digest() == blake3(b"x" * 40 * kept).digest()
    again.since = clock.now
    flights.advance(again, 30)
    clock.now += 1
    assert again.left_s(clock.now) == pytest.approx((70 - 40 * kept) / 30)
    assert again.taken_from == {"a"}, "whoever is asked for a faster one leaves it out"
    assert not again.cancelled


def test_a_flight_that_keeps_shards_waiting_is_held_to_far_faster_relays() -> None:
    clock = Clock()
    flights = Flights(first=1, clock=clock)
    slow = flying(flights, 0, "a", clock)
    asked: list[float] = []

    def slower(flight: Flight, left_s: float) -> list[str] | None:
        asked.append(left_s)
        return ["a"] if left_s > 100 else None

    slow.received, clock.now = 20, clock.now + 10
    flights.relieve(slower)  # nothing waits
    flights.add(1, 100)
    flights.relieve(slower)
    slow.received, clock.now = 21, clock.now + 30
    flights.relieve(slower)
    assert asked == [40.0, 10.0, pytest.approx(79 * 40 / 21 - 30)]
    assert slow.cancelled
