"""The intake judges: decisions by check, filters, observers, one receipt a submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from intake_world import (
    BROKEN,
    EQUAL,
    EXACT,
    GROUPS,
    META,
    MIXED,
    PARTLY,
    SIZE,
    World,
    seal_of,
)

from prime_core.api.errors import PluginError
from prime_core.api.types import Completion, Decision, Message, RewardedGroup
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.outcomes import balance
from prime_core.store.records import Dispatch
from prime_core.store.submission import write_submission
from prime_core.trainer.intake_judge import OnlineFilter

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


def test_observers_hear_of_a_group_once_a_process() -> None:
    world = World(EXACT)
    world.submit(world.dispatch(0, 0))
    intake = world.intake()
    intake.poll()
    intake.poll()
    world.intake().poll()
    assert sorted(world.notified) == sorted(set(world.notified))
    assert len(world.notified) == GROUPS
