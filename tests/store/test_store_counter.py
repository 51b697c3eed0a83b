"""The step counter: never a closed step, never a version outside the lag window, never stuck."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.store.counter import (
    MIN_ACCEPTANCE,
    RunView,
    StepRules,
    Wait,
    Work,
    acceptance_rate,
    expected_batches,
    next_step,
    step_rate,
)
from prime_core.store.records import Closed, ClosedGroup, Dispatch, GroupReceipt, Receipt

HEX = "ab" * 32
rules_strategy = st.builds(
    lambda steps, groups, level, extra: StepRules(steps, groups, level, level + extra),
    st.integers(1, 8),
    st.integers(1, 12),
    st.integers(0, 4),
    st.integers(0, 3),
)


class World:
    """A run without files: dispatches, receipts and closings by the contract's order."""

    def __init__(self, rules: StepRules, acceptance: float, seed: int, per_file: int) -> None:
        self.rules, self.per_file = rules, per_file
        self.view = RunView(newest_version=0)
        self._random, self._acceptance = random.Random(seed), acceptance

    def dispatch(self, work: Work, node: str = "w") -> Dispatch:
        n = self.view.next_index(work.step, node)
        made = Dispatch("r", work.step, node, n, work.version, HEX, self.per_file, 2, "default")
        self.view.dispatches[made.key] = made
        return made

    def receive(self, dispatch: Dispatch, decision: str = "accepted") -> None:
        groups = tuple(
            GroupReceipt(
                f"{dispatch.step}-{dispatch.node}-{dispatch.n}-{k}",
                "signal" if self._random.random() < self._acceptance else "zero_signal",
                "",
                2,
            )
            for k in range(dispatch.groups if decision == "accepted" else 0)
        )
        receipt = Receipt("r", *dispatch.key, HEX, decision, "", groups)
        self.view.receipts[receipt.key] = receipt
        while self._close():
            pass

    def _close(self) -> bool:
        step = self.view.first_open
        taken = {g.group_id for closed in self.view.closed.values() for g in closed.groups}
        free = [
            ClosedGroup(group.id, "p", HEX)
            for key, receipt in sorted(self.view.receipts.items())
            for group in receipt.groups
            if group.status == "signal"
            and group.id not in taken
            and key[0] <= step <= self.rules.last_step(key[0], self.version(key))
        ]
        if step >= self.rules.steps or len(free) < self.rules.groups_per_step:
            return False
        self.view.closed[step] = Closed("r", step, tuple(free[: self.rules.groups_per_step]), 0)
        self.view.first_open += 1
        return True

    def version(self, key: tuple[int, str, int]) -> int:
        return self.view.dispatches[key].policy_version


def test_the_lag_window_is_exact_where_max_equals_level() -> None:
    rules = StepRules(100, 4, 2, 2)
    assert [rules.version_for(step, 100) for step in range(5)] == [0, 0, 0, 1, 2]
    assert rules.version_for(5, 2) is None
    assert [rules.last_step(step, rules.newest_version(step)) for step in range(5)] == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_a_wider_maximum_carries_as_long_as_the_lag_allows() -> None:
    rules = StepRules(100, 4, 1, 3)
    assert rules.version_for(5, 2) == 2
    assert rules.version_for(5, 100) == 4
    assert rules.last_step(5, 2) == 5
    assert rules.last_step(5, 4) == 7
    assert rules.last_step(0, 0) == 2


@given(rules_strategy, st.integers(0, 20), st.integers(0, 20))
def test_versions_and_last_steps_keep_both_bounds(rules: StepRules, step: int, newest: int) -> None:
    version = rules.version_for(step, newest)
    if version is None:
        assert newest < rules.oldest_version(step)
        return
    assert min(step, rules.level) <= step - version <= rules.max_lag
    assert version <= newest
    last = rules.last_step(step, version)
    assert last >= step
    assert last - version <= rules.max_lag


def test_no_version_means_waiting_for_the_one_that_is_needed() -> None:
    rules = StepRules(10, 4, 0, 0)
    assert isinstance(next_step(RunView(), rules), Wait)
    view = RunView(first_open=1, newest_version=0)
    found = next_step(view, rules)
    assert isinstance(found, Wait)
    assert "version 1" in found.reason


def test_work_goes_to_the_smallest_step_whose_expectation_is_short() -> None:
    world = World(StepRules(10, 4, 2, 2), 1.0, 0, per_file=2)
    steps = []
    for _ in range(6):
        found = next_step(world.view, world.rules)
        assert isinstance(found, Work)
        steps.append(found.step)
        world.dispatch(found)
    assert steps == [0, 0, 1, 1, 2, 2]
    assert isinstance(next_step(world.view, world.rules), Wait)


def test_it_falls_back_where_the_expectation_fails() -> None:
    world = World(StepRules(10, 4, 2, 2), 0.0, 0, per_file=2)
    first = [world.dispatch(Work(0, 0)) for _ in range(2)]
    found = next_step(world.view, world.rules)
    assert found == Work(1, 0)
    world.dispatch(Work(1, 0))
    world.receive(first[0])
    assert next_step(world.view, world.rules) == Work(0, 0)


def test_work_says_how_many_groups_would_fill_the_batch() -> None:
    world = World(StepRules(10, 4, 2, 2), 1.0, 0, per_file=3)
    found = next_step(world.view, world.rules)
    assert isinstance(found, Work)
    assert found.groups == 4
    world.receive(world.dispatch(found))
    found = next_step(world.view, world.rules)
    assert isinstance(found, Work)
    assert (found.step, found.groups) == (0, 1)


def test_how_many_groups_are_short_follows_the_steps_own_rate() -> None:
    """One step's receipts are all there when its only worker asks; others' may still arrive."""
    world = World(StepRules(10, 8, 2, 2), 0.5, 0, per_file=4)
    found = next_step(world.view, world.rules)
    assert isinstance(found, Work)
    world.receive(world.dispatch(found))
    rate = step_rate(world.view, 0)
    assert rate == 0.5
    found = next_step(world.view, world.rules)
    assert isinstance(found, Work)
    assert (found.step, found.groups) == (0, 12)
    assert step_rate(world.view, 1) == 1.0


def test_refused_submissions_count_as_bad_and_late_ones_not_at_all() -> None:
    world = World(StepRules(10, 4, 2, 2), 1.0, 0, per_file=2)
    assert acceptance_rate(world.view) == 1.0
    world.receive(world.dispatch(Work(0, 0)), "late")
    assert acceptance_rate(world.view) == 1.0
    world.receive(world.dispatch(Work(0, 0)))
    world.receive(world.dispatch(Work(0, 0)), "rejected")
    assert acceptance_rate(world.view) == 0.5
    for _ in range(100):
        world.receive(world.dispatch(Work(0, 0)), "rejected")
    assert acceptance_rate(world.view) == MIN_ACCEPTANCE


def test_work_of_a_node_that_is_gone_is_not_expected() -> None:
    world = World(StepRules(1, 4, 0, 0), 1.0, 0, per_file=4)
    gone = world.dispatch(Work(0, 0), "gone")
    assert isinstance(next_step(world.view, world.rules), Wait)
    assert next_step(world.view, world.rules, nodes={"w"}) == Work(0, 0)
    world.view.submissions.add(gone.key)
    assert isinstance(next_step(world.view, world.rules, nodes={"w"}), Wait)


def test_a_node_that_lacks_a_steps_versions_works_for_the_next_it_can_serve() -> None:
    rules = StepRules(10, 4, 1, 2)
    view = RunView(first_open=3, newest_version=3)
    assert next_step(view, rules) == Work(3, 2)
    assert next_step(view, rules, held={1}) == Work(3, 1)
    assert next_step(view, rules, held={3}) == Work(4, 3)
    assert isinstance(next_step(view, rules, held={0}), Wait)


def test_carried_groups_fill_later_steps_in_advance() -> None:
    world = World(StepRules(10, 4, 0, 2), 1.0, 0, per_file=6)
    world.receive(world.dispatch(Work(0, 0)))
    assert world.view.first_open == 1
    assert expected_batches(world.view, world.rules) == {1: 2.0, 2: 0.0}


@settings(max_examples=60, deadline=None)
@given(
    rules_strategy,
    st.floats(0.15, 1.0),
    st.integers(0, 2**16),
    st.integers(1, 5),
    st.integers(1, 3),
    st.data(),
)
def test_a_run_ends_and_over_dispatch_is_bounded(
    rules: StepRules,
    acceptance: float,
    seed: int,
    per_file: int,
    workers: int,
    data: st.DataObject,
) -> None:
    """Workers in any interleaving: every step closes, and work in flight stays bounded."""
    world = World(rules, acceptance, seed, per_file)
    order = random.Random(data.draw(st.integers(0, 2**16)))
    busy: dict[str, Dispatch] = {}
    for _ in range(20_000):
        if world.view.first_open >= rules.steps:
            break
        node = f"w{order.randrange(workers)}"
        if node in busy:
            world.receive(busy.pop(node))
        elif isinstance(found := next_step(world.view, rules), Work):
            assert found.step >= world.view.first_open
            assert rules.allows(found.step, found.version)
            assert found.version <= world.view.newest_version
            pending = sum(
                each.groups * acceptance_rate(world.view, each.node)
                for each in busy.values()
                if each.step == found.step
            )
            assert pending < rules.groups_per_step
            busy[node] = world.dispatch(found, node)
        elif not busy:
            assert world.view.newest_version < world.view.first_open, found
        if order.random() < 0.3:  # the trainer seals the version of a closed step
            newest = world.view.newest_version
            world.view.newest_version = min(newest + 1, world.view.first_open)
    assert isinstance(next_step(world.view, rules), Wait)
    assert next_step(world.view, rules) == Wait("every step of the run is closed", over=True)


def test_unfinished_work_is_what_a_restarted_worker_repeats() -> None:
    world = World(StepRules(10, 2, 0, 0), 1.0, 0, per_file=2)
    mine = world.dispatch(Work(0, 0))
    world.dispatch(Work(0, 0), "other")
    assert world.view.unfinished("w", world.rules) == [mine]
    world.view.first_open = 1
    assert world.view.unfinished("w", world.rules) == []


@pytest.mark.parametrize("level", [0, 1, 2, 4])
def test_rules_come_from_the_config(level: int) -> None:
    from prime_core.config.sections import AsyncSection, RunConfig, TrainerSection

    config = RunConfig.model_validate(
        {
            "model": {"path": "m"},
            "environments": [{"use": "sums"}],
            "async": AsyncSection(level=level),
            "trainer": TrainerSection(steps=7, groups_per_step=5),
        }
    )
    assert StepRules.from_config(config) == StepRules(7, 5, level, level)
