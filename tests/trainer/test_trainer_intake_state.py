"""The intake's pure state machine: order, contiguity, carrying, fates."""

from __future__ import annotations

from prime_core.store.counter import StepRules
from prime_core.store.records import Closed, GroupReceipt, Receipt
from prime_core.trainer.intake_state import Fate, IntakeState

HEX = "0" * 64


def receipt(
    step: int, n: int, statuses: str = "ss", node: str = "a", decision: str = "accepted"
) -> Receipt:
    """A receipt whose groups have signal (s), zero signal (z), are filtered (f), unscored (u)."""
    names = {"s": "signal", "z": "zero_signal", "f": "filtered", "u": "unscored"}
    groups = tuple(
        GroupReceipt(f"{step}-{node}-{n}-{k}", names[status], "why" if status == "f" else "", 4)
        for k, status in enumerate(statuses if decision == "accepted" else "")
    )
    return Receipt("run", step, node, n, HEX, decision, "", groups)


def ids(closed: Closed | None) -> list[str] | None:
    return None if closed is None else [group.group_id for group in closed.groups]


def test_a_batch_is_the_first_groups_with_signal_in_order() -> None:
    state = IntakeState("run", StepRules(5, 3, 0, 0))
    state.receive(receipt(0, 1), 0)
    state.receive(receipt(0, 0, "zs", "b"), 0)
    assert state.next_batch() is None
    state.receive(receipt(0, 0, "sz"), 0)
    closed = state.next_batch()
    assert ids(closed) == ["0-a-0-0", "0-a-1-0", "0-a-1-1"]
    assert closed is not None
    assert closed.groups[0].path == "steps/000000/submissions/a-00000.parquet"
    assert closed.groups[0].sha256 == HEX
    state.close(closed)
    assert state.first_open == 1
    assert state.next_batch() is None


def test_a_submission_counts_only_behind_its_predecessors() -> None:
    state = IntakeState("run", StepRules(5, 2, 0, 0))
    state.receive(receipt(0, 1), 0)
    state.receive(receipt(0, 2), 0)
    assert state.next_batch() is None
    state.receive(receipt(0, 0, decision="rejected"), 0)
    assert ids(state.next_batch()) == ["0-a-1-0", "0-a-1-1"]


def test_carried_groups_come_first_and_end_where_the_lag_does() -> None:
    state = IntakeState("run", StepRules(5, 2, 0, 1))
    first = receipt(0, 0, "ssss")
    state.receive(first, 0)
    closed = state.next_batch()
    assert closed is not None
    state.close(closed)
    assert state.available() == 2
    state.receive(receipt(1, 0), 1)
    closed = state.next_batch()
    assert ids(closed) == ["0-a-0-2", "0-a-0-3"]
    assert closed is not None
    assert closed.closed_at_version == 0
    state.close(closed)
    assert ids(state.next_batch()) == ["1-a-0-0", "1-a-0-1"]


def test_nothing_is_carried_where_maximum_equals_level() -> None:
    state = IntakeState("run", StepRules(5, 2, 2, 2))
    state.receive(receipt(0, 0, "ssss"), 0)
    closed = state.next_batch()
    assert closed is not None
    state.close(closed)
    assert state.available() == 0
    assert state.is_late(0, 0)
    assert not state.is_late(1, 0)


def test_a_run_closes_no_step_beyond_its_last() -> None:
    state = IntakeState("run", StepRules(1, 1, 0, 3))
    state.receive(receipt(0, 0, "ssss"), 0)
    closed = state.next_batch()
    assert closed is not None
    state.close(closed)
    assert state.next_batch() is None
    assert state.is_late(0, 0)


def test_fates_follow_the_rules() -> None:
    state = IntakeState("run", StepRules(4, 1, 0, 1))
    state.newest_version = 0
    taken = receipt(0, 0, "ssszfu")
    state.receive(taken, 0)
    groups = dict(zip("abczfu", taken.groups, strict=True))

    def fate(name: str, status: str = "scored") -> Fate | None:
        return state.fate(taken, 0, groups[name], status)

    assert fate("z") == Fate("zero_signal")
    assert fate("f") == Fate("filtered", "why")
    assert fate("u") == Fate("unscored", "group")
    assert fate("u", "error") == Fate("unscored", "error")
    assert fate("a", "abstained") == Fate("unscored", "abstained")
    assert fate("z", "error") == Fate("unscored", "error")
    assert fate("a") is None
    for _ in range(2):
        closed = state.next_batch()
        assert closed is not None
        state.close(closed)
    assert (fate("a"), fate("b")) == (None, None)
    assert fate("c") == Fate("expired")
    state.newest_version = 1
    assert fate("a") == Fate("trained", trained_step=0)
    assert fate("b") is None
    state.newest_version = 2
    assert fate("b") == Fate("trained", trained_step=1)


def test_what_is_carried_at_the_runs_end_is_surplus_and_never_trains_later() -> None:
    rules = StepRules(1, 1, 0, 3)
    state = IntakeState("run", rules)
    taken = receipt(0, 0)
    state.receive(taken, 0)
    closed = state.next_batch()
    assert closed is not None
    state.close(closed)
    assert state.fate(taken, 0, taken.groups[1], "scored") is None
    state.newest_version = 1
    assert state.ended
    assert state.fate(taken, 0, taken.groups[1], "scored") == Fate("surplus")
    longer = IntakeState("run", StepRules(9, 1, 0, 3))
    longer.close(closed)
    longer.receive(taken, 0, spent=[taken.groups[1].id])
    assert longer.next_batch() is None
