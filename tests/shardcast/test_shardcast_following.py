"""Which version a worker's client takes next: what an unclosed step can use, failed ones last."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from shardcast_support import client, origin, publish, until

from prime_core.shardcast.following import Failures, first_step, follow, kept, next_version
from prime_core.store.counter import StepRules


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@st.composite
def situations(draw: st.DrawFn) -> tuple[StepRules, int, set[int], set[int], set[int]]:
    level = draw(st.integers(0, 4))
    rules = StepRules(draw(st.integers(1, 12)), 8, level, level + draw(st.integers(0, 3)))
    step = draw(st.integers(0, rules.steps))
    versions = st.sets(st.integers(0, rules.steps + 2))
    return rules, step, draw(versions), draw(versions), draw(versions)


@given(situations())
@settings(max_examples=400, deadline=None)
def test_what_is_fetched_is_announced_usable_and_not_here(
    situation: tuple[StepRules, int, set[int], set[int], set[int]],
) -> None:
    rules, step, announced, held, failed = situation
    failures = Failures(Clock())
    for version in failed:
        failures.note(version)
    found = next_version(rules, step, announced, held, failures)
    useful = {v for v in announced for s in range(step, rules.steps) if rules.allows(s, v)}
    assert {v for v in announced if first_step(rules, step, v) is not None} == useful
    if found is not None:
        assert found in useful - held
        assert found not in failed
    elif held == failed == set():
        assert not useful


def test_a_failed_version_gives_way_to_the_next_that_a_step_can_use() -> None:
    clock = Clock()
    failures = Failures(clock)
    rules = StepRules(steps=20, groups_per_step=8, level=2, max_lag=2)
    assert next_version(rules, 7, {4, 5, 6}, set(), failures) == 5
    failures.note(5)
    assert next_version(rules, 7, {4, 5, 6}, set(), failures) == 6
    # Nothing else can be used: the same one again, after a back-off that doubles.
    assert next_version(rules, 7, {4, 5, 6}, {6}, failures) is None
    clock.now += 1.0
    assert next_version(rules, 7, {4, 5, 6}, {6}, failures) == 5
    failures.note(5)
    clock.now += 1.5
    assert next_version(rules, 7, {4, 5, 6}, {6}, failures) is None
    clock.now += 0.6
    assert next_version(rules, 7, {4, 5, 6}, {6}, failures) == 5


def test_a_lag_that_leaves_a_choice_takes_the_newest_and_then_an_older_one() -> None:
    failures = Failures(Clock())
    rules = StepRules(steps=20, groups_per_step=8, level=1, max_lag=3)
    announced = {2, 3, 4, 5, 6}
    assert next_version(rules, 6, announced, set(), failures) == 5
    failures.note(5)
    assert next_version(rules, 6, announced, set(), failures) == 4
    assert next_version(rules, 6, announced, {4}, failures) == 6
    assert next_version(rules, 6, announced, {4, 6}, failures) is None


def test_what_no_step_needs_is_dropped_but_the_newest() -> None:
    rules = StepRules(steps=20, groups_per_step=8, level=2, max_lag=2)
    assert kept(rules, 7, {1, 2, 3, 5, 6}) == [5, 6]
    assert kept(rules, 7, {1, 2, 3}) == [2, 3]


def test_the_client_beside_a_worker_follows_the_run(tmp_path: Path) -> None:
    rules = StepRules(steps=5, groups_per_step=8, level=2, max_lag=2)
    for version in range(2):
        publish(tmp_path / "run", version)
    step, told, stop = [0], [], threading.Event()

    def tell(event: str, numbers: Mapping[str, float]) -> None:
        told.append((event, int(numbers["version"])))

    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client")
        thread = threading.Thread(
            target=follow, args=(one, rules, lambda: step[0], stop, tell), daemon=True
        )
        thread.start()
        until(lambda: one.shelf.whole() == [0, 1])
        step[0] = 3  # version 0 serves steps 0 to 2
        publish(tmp_path / "run", 2)
        until(lambda: one.shelf.whole() == [1, 2])
        publish(tmp_path / "run", 3)  # for step 5, which this run hasn't
        publish(tmp_path / "run", 4)
        step[0] = 5
        thread.join(60)
        assert not thread.is_alive()
    assert told == [("fetched", 0), ("fetched", 1), ("fetched", 2)]
