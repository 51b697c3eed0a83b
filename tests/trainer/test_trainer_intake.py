"""The intake over a store: decisions, order, restarts at any write, outcomes that add up."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_world import (
    BROKEN,
    EQUAL,
    GROUPS,
    META,
    MIXED,
    PARTLY,
    SIZE,
    Scores,
    World,
    drive,
    seal_of,
)

from prime_core.api.errors import PluginError, RunError
from prime_core.api.types import Completion, Decision, Message, RewardedGroup
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.outcomes import balance
from prime_core.store.records import Closed, Dispatch
from prime_core.store.submission import write_submission
from prime_core.trainer.intake_judge import OnlineFilter

EXACT = StepRules(steps=3, groups_per_step=4, level=1, max_lag=1)
CARRYING = StepRules(steps=3, groups_per_step=4, level=0, max_lag=2)


def batches(world: World) -> list[list[str]]:
    return [[group.group_id for group in Closed.from_json(data).groups] for data in world.closed()]


# --- judging -------------------------------------------------------------------------------------


def test_groups_are_judged_one_by_one() -> None:
    world = World(StepRules(2, 4, 0, 0))
    dispatch = world.dispatch(0, 0)
    world.submit(dispatch, [PARTLY, EQUAL, BROKEN])
    world.intake().poll()
    receipt = world.receipt(dispatch)
    assert receipt.decision == "accepted"
    assert [(group.status, group.scored) for group in receipt.groups] == [
        ("signal", 2),
        ("zero_signal", 4),
        ("unscored", 1),
    ]
    assert receipt.groups[1].reason == "constant: equal rewards"
    assert world.notified == ["0-worker-0-0-0", "0-worker-0-0-1"]
    assert world.counts() == {"zero_signal": 4, "unscored(error)": 5, "unscored(group)": 1}
    found = balance(world.outside)
    assert found.holds
    assert (found.total.carried, found.total.in_flight) == (2, 0)
    logged = next(values for values in world.logged if "intake/groups" in values)
    assert logged["intake/equal_reward_groups"] == logged["intake/equal_score_groups"] == 1


def test_filters_and_observers_see_decoded_prompts_and_turns() -> None:
    world = World(StepRules(2, 4, 0, 0))
    dispatch = world.dispatch(0, 0)
    turns = {
        "completion_tokens": [3, 4, 5, 6, 7],
        "completion_mask": [True, True, False, False, True],
        "completion_logprobs": [-1.0, 0.0, 0.0, 0.0, -1.0],
        "turn_ends": [2, 5],
        "finish_reason": "stop",
    }
    rows = [replace(row, **turns) for row in world.rows(dispatch, [PARTLY] * GROUPS)]
    judge = world.judge(decode=lambda ids: " ".join(map(str, ids)), max_turns=2)
    judgement = judge.judge(write_submission(rows, META), dispatch, 0)
    assert judgement.reason == ""
    group = judgement.finished[0].group
    assert group.task.prompt == (Message("user", "1 2"),)
    assert [rollout.completion for rollout in group.rollouts] == [
        Completion(
            "7",
            (Message("assistant", "3 4"), Message("user", "5 6"), Message("assistant", "7")),
            "stop",
            3,
        )
    ] * 2


class Dropping:
    """Drops every group, though its rewards differ."""

    def keep_group(self, group: RewardedGroup) -> Decision:
        return Decision(False, "dull")


class Raising:
    """A filter that fails."""

    def keep_group(self, group: RewardedGroup) -> Decision:
        raise RuntimeError("no idea")


def test_a_group_with_signal_that_a_filter_drops_is_filtered() -> None:
    world = World(StepRules(2, 4, 0, 0), filters=[OnlineFilter("dropping", None, Dropping())])
    world.submit(world.dispatch(0, 0), [MIXED, EQUAL, BROKEN])
    world.intake().poll()
    assert world.counts() == {
        "filtered(dropping: dull)": 4,
        "zero_signal": 4,
        "unscored(error)": 3,
        "unscored(group)": 1,
    }


def test_a_filter_that_raises_stops_the_intake_and_names_itself() -> None:
    world = World(StepRules(2, 4, 0, 0), filters=[OnlineFilter("raising", "dist", Raising())])
    world.submit(world.dispatch(0, 0))
    with pytest.raises(PluginError, match=r"data_filter\.raising \(dist\), working.*no idea"):
        world.intake().poll()
    assert world.outside.list(layout.receipts_dir(0)) == []


Spoil = Callable[[World, Dispatch], None]


def spoil_rows(column: str, value: object) -> Spoil:
    def spoil(world: World, dispatch: Dispatch) -> None:
        rows = world.rows(dispatch, [MIXED] * GROUPS)
        changed = [
            type(row)(**{**{name: getattr(row, name) for name in row.__slots__}, column: value})
            for row in rows
        ]
        world.announce(dispatch)
        world.put(dispatch, write_submission(changed, META))

    return spoil


def swap_seeds(world: World, dispatch: Dispatch) -> None:
    rows = world.rows(dispatch, [MIXED] * GROUPS)
    seeds = [row.sampling_seed for row in rows]
    changed = [
        type(row)(**{**{name: getattr(row, name) for name in row.__slots__}, "sampling_seed": seed})
        for row, seed in zip(rows, seeds[::-1], strict=True)
    ]
    world.announce(dispatch)
    world.put(dispatch, write_submission(changed, META))


def put_garbage(world: World, dispatch: Dispatch) -> None:
    world.announce(dispatch)
    world.put(dispatch, b"garbage")


def announce_other(**changes: object) -> Spoil:
    def spoil(world: World, dispatch: Dispatch) -> None:
        values = {name: getattr(dispatch, name) for name in dispatch.__dataclass_fields__}
        announced = Dispatch(**{**values, **changes})
        world.outside.put(layout.dispatch_path(*dispatch.key), announced.to_json())
        world.put(dispatch, write_submission(world.rows(dispatch, [MIXED] * GROUPS), META))

    return spoil


@pytest.mark.parametrize(
    ("check", "spoil"),
    [
        ("schema", put_garbage),
        ("bounds", spoil_rows("max_tokens", 17)),
        ("bounds", spoil_rows("temperature", 0.5)),
        ("bounds", spoil_rows("prompt_tokens", [1, 100])),  # the trainer's embedding has 100 rows
        ("bounds", spoil_rows("completion_tokens", [2**31 - 1, 4])),
        ("environment", spoil_rows("environment", "other")),
        ("task", spoil_rows("task_id", "task-77")),
        ("seeds", swap_seeds),
        ("run", announce_other(run_id="run-2")),
        ("dispatch", announce_other(groups=GROUPS + 1)),
        ("dispatch", announce_other(group_size=SIZE + 1)),
        ("dispatch", announce_other(node_class="big")),
        ("group", announce_other(groups=GROUPS - 1)),
        ("digest", announce_other(policy_digest="00" * 32)),
        ("version", announce_other(policy_version=1, policy_digest=seal_of(1).hex())),
    ],
)
def test_a_bad_submission_is_rejected_by_its_check(check: str, spoil: Spoil) -> None:
    world = World(StepRules(2, 4, 1, 1))
    dispatch = world.dispatch(1, 0)
    spoil(world, dispatch)
    world.intake().poll()
    receipt = world.receipt(dispatch)
    assert (receipt.decision, receipt.groups) == ("rejected", ())
    assert receipt.reason.startswith(f"{check}: ")
    assert list(world.counts()) == [f"rejected({check})"]
    assert all(row.task_id for row in world.outcomes())
    assert balance(world.outside).holds


def test_a_version_that_isnt_sealed_or_lags_too_little_is_rejected() -> None:
    world = World(StepRules(9, 4, 1, 2))
    for version in (1, 2, 3):
        world.seal(version)
    for n, version in enumerate((0, 1, 2, 3)):
        world.submit(world.dispatch(3, n, version))
    world.submit(world.dispatch(5, 0, 4))
    world.intake().poll()
    decisions = [world.receipt(world.dispatch(3, n)).decision for n in range(4)]
    assert decisions == ["rejected", "accepted", "accepted", "rejected"]
    assert world.receipt(world.dispatch(5, 0)).reason.startswith("version: ")


def test_a_submission_that_nobody_announced_is_rejected_and_counts_nowhere() -> None:
    world = World(EXACT)
    dispatch = world.dispatch(0, 0)
    world.put(dispatch, write_submission(world.rows(dispatch, [MIXED] * GROUPS), META))
    world.outside.put(f"{layout.submissions_dir(0)}/odd_name.parquet", b"x")
    world.intake().poll()
    assert world.receipt(dispatch).reason.startswith("dispatch: ")
    assert world.outcomes() == []
    assert balance(world.outside).total.dispatched == 0


def test_a_submission_for_a_closed_step_is_late_unless_it_may_be_carried() -> None:
    for rules, decision in ((EXACT, "late"), (CARRYING, "accepted")):
        world = World(rules)
        for n in range(2):
            world.submit(world.dispatch(0, n))
        intake = world.intake()
        intake.poll()
        assert len(world.closed()) == 1
        straggler = world.dispatch(0, 2)
        world.submit(straggler)
        intake.poll()
        assert world.receipt(straggler).decision == decision
        assert balance(world.outside).holds


# --- closing -------------------------------------------------------------------------------------


def test_steps_close_while_the_trainer_is_busy() -> None:
    world = World(StepRules(6, 3, 2, 2))
    for step in range(3):
        world.submit(world.dispatch(step, 0))
    world.intake().poll()
    assert len(world.closed()) == 3


def test_carried_groups_train_before_the_steps_own() -> None:
    world = World(CARRYING)
    for n in range(2):
        world.submit(world.dispatch(0, n))
    intake = world.intake()
    intake.poll()
    world.train()
    world.submit(world.dispatch(1, 0))
    intake.poll()
    assert batches(world)[1] == [
        "0-worker-0-1-1",
        "0-worker-0-1-2",
        "1-worker-0-0-0",
        "1-worker-0-0-1",
    ]


def test_a_whole_run_settles_every_rollout_and_ends() -> None:
    world = World(CARRYING)
    plan = [(step, n) for step in range(3) for n in range(2)]

    def turn() -> bool:
        if plan and world.outside.exists(layout.policy_seal_path(plan[0][0])):
            step, n = plan.pop(0)
            world.submit(world.dispatch(step, n), [MIXED, PARTLY, EQUAL])
            return True
        return False

    world.announce(world.dispatch(1, 5))
    intake = drive(world, turn)
    assert intake.finished
    found = balance(world.outside)
    assert found.holds
    assert (found.total.carried, found.total.in_flight) == (0, 0)
    assert found.total.outcomes["lost"] == GROUPS * SIZE
    assert {row.detail for row in world.outcomes() if row.outcome == "lost"} == {"worker-0"}
    trained = [row for row in world.outcomes() if row.outcome == "trained"]
    assert {(row.trained_step, row.lag) for row in trained} <= {
        (step, lag) for step in range(3) for lag in range(3)
    }
    assert len({row.group_id for row in trained}) == 3 * 4
    assert intake.waiting_for() == "the trainer to seal version 3"


def test_the_end_settles_stragglers_surplus_and_lost_work() -> None:
    world = World(StepRules(1, 2, 0, 2))
    world.submit(world.dispatch(0, 0))
    intake = world.intake()
    intake.poll()
    world.train()
    world.submit(world.dispatch(0, 1))
    world.announce(world.dispatch(0, 2))
    intake.poll()
    assert intake.finished
    assert world.counts() == {
        "trained": 2 * SIZE,
        "surplus": SIZE,
        "late": GROUPS * SIZE,
        "lost(worker-0)": GROUPS * SIZE,
    }


def test_a_dispatch_after_the_end_is_settled_by_running_the_intake_again() -> None:
    world = World(StepRules(1, 2, 0, 0))
    world.submit(world.dispatch(0, 0))
    intake = world.intake()
    intake.poll()
    world.train()
    intake.poll()
    assert intake.finished
    world.announce(world.dispatch(0, 1))
    assert balance(world.outside).total.in_flight == GROUPS * SIZE
    world.intake().poll()
    found = balance(world.outside)
    assert found.holds
    assert found.total.in_flight == 0


def test_a_run_that_is_made_longer_goes_on_without_what_ended_as_surplus() -> None:
    world = World(StepRules(1, 2, 0, 2))
    world.submit(world.dispatch(0, 0))
    drive(world, lambda: False)
    assert world.counts() == {"trained": 2 * SIZE, "surplus": SIZE}
    world.rules = StepRules(2, 2, 0, 2)
    world.submit(world.dispatch(1, 0))
    drive(world, lambda: False)
    assert batches(world)[1] == ["1-worker-0-0-0", "1-worker-0-0-1"]
    assert world.counts() == {"trained": 4 * SIZE, "surplus": 2 * SIZE}
    assert balance(world.outside).holds


def test_batches_beyond_the_end_of_a_run_that_is_cut_short_are_surplus() -> None:
    world = World(StepRules(6, 3, 2, 2))
    for step in range(3):
        world.submit(world.dispatch(step, 0))
    world.intake().poll()
    assert len(world.closed()) == 3
    world.train()
    world.rules = StepRules(1, 3, 2, 2)
    intake = world.intake()
    intake.poll()
    assert intake.finished
    assert world.counts() == {"trained": 3 * SIZE, "surplus": 6 * SIZE}
    assert balance(world.outside).holds
    world.intake().poll()
    world.rules = StepRules(6, 3, 2, 2)
    with pytest.raises(RunError, match="cut short before step 1"):
        world.intake()


def test_a_straggler_of_a_step_closed_long_ago_gets_its_receipt_at_the_next_closing() -> None:
    world = World(StepRules(9, 3, 0, 0))
    straggler = world.dispatch(0, 1)
    world.announce(straggler)
    intake = world.intake()
    for step in range(5):
        world.submit(world.dispatch(step, 0))
        intake.poll()
        world.train()
    world.submit(straggler)
    assert not world.outside.exists(layout.receipt_path(*straggler.key))
    world.submit(world.dispatch(5, 0))
    intake.poll()
    assert world.receipt(straggler).decision == "late"


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


def test_observers_hear_of_a_group_once_a_process() -> None:
    world = World(EXACT)
    world.submit(world.dispatch(0, 0))
    intake = world.intake()
    intake.poll()
    intake.poll()
    world.intake().poll()
    assert sorted(world.notified) == sorted(set(world.notified))
    assert len(world.notified) == GROUPS
