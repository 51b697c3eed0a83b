"""Relays are asked in proportion to success rate times bandwidth, and none is forgotten."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.shardcast.choosing import FIRST_BAN_S, Relays
from prime_core.shardcast.counting import MAX_ADDRESSES, Counters, RateLimit

A, B, C = "http://a:1", "http://b:1", "http://c:1"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def share(relays: Relays, draws: int = 4000) -> dict[str, float]:
    counts = Counter(relays.choose() for _ in range(draws))
    return {str(address): count / draws for address, count in counts.items()}


def test_only_a_clearly_faster_relay_takes_over() -> None:
    relays = Relays([A, B, C])
    for address, size in ((A, 100), (B, 1000), (C, 160)):
        relays.succeeded(address, size, 1.0)
    assert relays.slower(A, 1000, 9.0) == [A, C]
    assert relays.slower(A, 1000, 9.0, avoid=[B]) is None
    assert relays.slower(B, 1000, 1.0) is None
    relays.lied(B)
    assert relays.slower(A, 1000, math.inf) == [A, B]
    assert Relays([A, B]).slower(A, 1000, math.inf) is None, "nothing was ever measured"


def test_probability_is_proportional_to_success_times_bandwidth() -> None:
    relays = Relays([A, B], rng=random.Random(0))
    relays[A].bandwidth, relays[B].bandwidth = 3e6, 1e6
    assert share(relays)[A] == pytest.approx(0.75, abs=0.03)
    relays[A].success = 1 / 3
    assert share(relays)[A] == pytest.approx(0.5, abs=0.03)


def test_greedy_and_uniform_are_what_they_say() -> None:
    for rule, expected in (("greedy", 1.0), ("uniform", 0.5)):
        relays = Relays([A, B], rule=rule, rng=random.Random(0))  # type: ignore[arg-type]
        relays[A].bandwidth, relays[B].bandwidth = 3e6, 1e6
        assert share(relays)[A] == pytest.approx(expected, abs=0.04)


def test_a_failure_costs_success_but_says_nothing_of_bandwidth() -> None:
    relays = Relays([A, B])
    relays.succeeded(A, 10**6, 1.0)
    for _ in range(10):
        relays.failed(A)
    assert relays[A].bandwidth == pytest.approx(1e6)
    assert relays[A].success < 0.1
    for _ in range(200):  # what others report heals it
        relays.succeeded(B, 10**6, 1.0)
    assert relays[A].success == pytest.approx(1.0)


@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.booleans()), max_size=200))
@settings(max_examples=50, deadline=None)
def test_there_is_always_somebody_to_ask(events: list[tuple[str, bool]]) -> None:
    relays = Relays([A, B, C], rng=random.Random(0))
    for address, well in events:
        if well:
            relays.succeeded(address, 1000, 0.0)
        else:
            relays.failed(address)
        assert relays.choose() in (A, B, C)
        assert relays.choose({A, B}) == C
        assert all(0 <= relays[each].success <= 1 for each in (A, B, C))


def test_a_liar_is_left_out_twice_as_long_each_time() -> None:
    clock = Clock()
    relays = Relays([A, B], clock=clock)
    for lies in range(4):
        relays.lied(A)
        assert {relays.choose() for _ in range(50)} == {B}
        clock.now += FIRST_BAN_S * 2**lies
        assert relays.banned() == []
    relays.lied(A)
    relays.lied(B)
    assert relays.choose() is None


def test_lies_are_forgiven_with_the_time() -> None:
    clock = Clock()
    relays = Relays([A], clock=clock)
    for _ in range(30):  # a corrupted shard a week costs half a minute each time, not an hour
        relays.lied(A)
        clock.now += FIRST_BAN_S
        assert relays.banned() == []
        clock.now += 7 * 24 * 3600
    for _ in range(3):
        relays.lied(A)
        clock.now = relays[A].banned_until
    assert relays[A].lies == 3, "nothing is forgiven while it lies"


def test_an_address_may_ask_so_often_and_no_more() -> None:
    clock = Clock()
    limit = RateLimit(10, clock)
    assert sum(limit.allows("one") for _ in range(100)) == 20
    assert limit.allows("another")
    clock.now += 1.0
    assert sum(limit.allows("one") for _ in range(100)) == 10
    for number in range(MAX_ADDRESSES + 10):
        limit.allows(str(number))
    assert len(limit._buckets) == MAX_ADDRESSES


def test_counters_are_prometheus_text() -> None:
    counters = Counters()
    counters.add('requests_total{status="200"}')
    counters.add('requests_total{status="404"}', 2)
    counters.set("versions_held", 3)
    assert counters.text() == (
        "# TYPE prime_shardcast_requests_total counter\n"
        'prime_shardcast_requests_total{status="200"} 1\n'
        'prime_shardcast_requests_total{status="404"} 2\n'
        "# TYPE prime_shardcast_versions_held gauge\n"
        "prime_shardcast_versions_held 3\n"
    )
