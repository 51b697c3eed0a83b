"""The intake closes steps: late, carried, surplus and lost groups, and the end of a run."""

from __future__ import annotations

import pytest
from intake_world import (
    CARRYING,
    EQUAL,
    EXACT,
    GROUPS,
    MIXED,
    PARTLY,
    SIZE,
    World,
    batches,
    drive,
)

from prime_core.api.errors import RunError
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.outcomes import balance


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
