"""The intake decides the same in any order of arrival and after a crash at any write."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_world import (
    BROKEN,
    CARRYING,
    EQUAL,
    EXACT,
    MIXED,
    PARTLY,
    Scores,
    World,
    batches,
    drive,
)

from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.outcomes import balance

# --- arrival times -------------------------------------------------------------------------------

SCORES = st.sampled_from([MIXED, MIXED, PARTLY, EQUAL, BROKEN])


def deliver_at_random(
    rules: StepRules, contents: dict[tuple[int, int], list[Scores]], seed: int
) -> World:
    """Deliver one worker's submissions in any order their versions allow, polling in between."""
    world, order = World(rules), random.Random(seed)
    left = dict(contents)

    def turn() -> bool:
        able = [
            key
            for key in left
            if world.outside.exists(layout.policy_seal_path(rules.newest_version(key[0])))
        ]
        for step, n in order.sample(able, order.randint(min(1, len(able)), len(able))):
            world.submit(world.dispatch(step, n), left.pop((step, n)))
        return bool(able)

    drive(world, turn)
    return world


ARRIVALS = (
    st.integers(0, 2),
    st.lists(SCORES, min_size=45, max_size=45),
    st.integers(0, 2**16),
    st.integers(0, 2**16),
)


def check_arrival_times(level: int, scores: list[Scores], one: int, other: int) -> None:
    """One worker and max == level: `closed.json` is a function of the submissions alone."""
    rules = StepRules(3, 4, level, level)
    keys = [(step, n) for step in range(3) for n in range(5)]
    contents = {key: scores[3 * i : 3 * i + 3] for i, key in enumerate(keys)}
    first = deliver_at_random(rules, contents, one)
    second = deliver_at_random(rules, contents, other)
    assert first.closed() == second.closed()
    for world in (first, second):
        assert balance(world.outside).holds
        taken = [group for batch in batches(world) for group in batch]
        assert len(taken) == len(set(taken))


@settings(max_examples=6, deadline=None)
@given(*ARRIVALS)
def test_batches_do_not_depend_on_arrival_times(
    level: int, scores: list[Scores], one: int, other: int
) -> None:
    check_arrival_times(level, scores, one, other)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(*ARRIVALS)
def test_many_batches_do_not_depend_on_arrival_times(
    level: int, scores: list[Scores], one: int, other: int
) -> None:
    check_arrival_times(level, scores, one, other)


# --- restarts ------------------------------------------------------------------------------------


def whole_run(rules: StepRules, crashes: dict[int, bool]) -> World:
    world = World(rules)
    world.inside.crashes = crashes
    pattern = [[MIXED, PARTLY, EQUAL], [BROKEN, MIXED, MIXED], [MIXED, MIXED, EQUAL]]
    plan = [(step, n) for step in range(rules.steps) for n in range(3)]

    def turn() -> bool:
        if not plan:
            return False
        step, n = plan[0]
        if not world.outside.exists(layout.policy_seal_path(rules.newest_version(step))):
            return False
        plan.pop(0)
        dispatch = world.dispatch(step, n)
        if n == 2 and step == 1:
            world.announce(dispatch)
            world.put(dispatch, b"garbage")
        else:
            world.submit(dispatch, pattern[n])
        return True

    world.announce(world.dispatch(0, 7))
    drive(world, turn)
    return world


def check_crashes(rules: StepRules, every: int) -> None:
    calm = whole_run(rules, {})
    assert len(calm.closed()) == rules.steps
    assert balance(calm.outside).total.in_flight == 0
    cases = [(number, happens) for number in range(calm.inside.writes) for happens in (True, False)]
    for number, happens in cases[::every]:
        world = whole_run(rules, {number: happens})
        assert world.closed() == calm.closed()
        assert world.outcomes() == calm.outcomes()


BOTH = pytest.mark.parametrize("rules", [EXACT, CARRYING], ids=["exact", "carrying"])


@BOTH
def test_a_crash_at_a_write_neither_loses_nor_doubles(rules: StepRules) -> None:
    check_crashes(rules, every=7)


@pytest.mark.slow
@BOTH
def test_a_crash_at_any_write_neither_loses_nor_doubles(rules: StepRules) -> None:
    check_crashes(rules, every=1)


@BOTH
def test_many_crashes_neither_lose_nor_double(rules: StepRules) -> None:
    crashes = {number: number % 3 == 0 for number in range(0, 60, 2)}
    assert whole_run(rules, crashes).outcomes() == whole_run(rules, {}).outcomes()


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.integers(0, 60), st.booleans(), max_size=12), st.booleans())
def test_any_crashes_neither_lose_nor_double(crashes: dict[int, bool], exact: bool) -> None:
    rules = EXACT if exact else CARRYING
    assert whole_run(rules, crashes).outcomes() == whole_run(rules, {}).outcomes()
