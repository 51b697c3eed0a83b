"""Shards under way: one first, then more; a slow one is taken over once, never by two at a time."""

from __future__ import annotations

import threading
import time

import pytest

from prime_core.shardcast.flights import Flight, Flights


def airborne(flights: Flights, address: str) -> Flight:
    flight = flights.take(lambda _: True)
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
    assert flights.take(lambda _: True) is None
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


@pytest.mark.parametrize("another", [True, False])
def test_a_slow_shard_is_taken_over_once_where_somebody_else_can_be_asked(another: bool) -> None:
    flights = Flights()
    flights.add(0, 100)
    flights.landed(airborne(flights, "a"))
    flights.add(1, 100)
    slow = airborne(flights, "a")
    slow.since -= 1000
    flights._cancel_slowest(lambda _: another)
    assert slow.cancelled == another
    if not another:
        return
    assert slow.avoid["a"] > time.monotonic()
    flights.back(slow)
    again = airborne(flights, "b")
    assert again is slow
    assert not again.cancelled
    again.since -= 1000
    flights._cancel_slowest(lambda _: True)
    assert not again.cancelled, "where all are slow, starting again and again is waste"
