"""Outcome log, balance and a sample's life: once each, and an equation that can fail."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rollout_rows import META, dispatch, rows

from prime_core.api.errors import FormatError, StoreError
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog, OutcomeRow, balance, why
from prime_core.store.records import Closed, ClosedGroup, GroupReceipt, Receipt
from prime_core.store.submission import read_submission, write_submission

PATH = layout.submission_path(3, "worker-0", 2)


def outcome(k: int = 0, sample: int = 0, name: str = "trained", detail: str = "") -> OutcomeRow:
    trained = 4 if name == "trained" else None
    return OutcomeRow(
        group_id=f"3-worker-0-2-{k}",
        sample=sample,
        environment="sums",
        task_id=f"task-{k}",
        node="worker-0",
        submission=2,
        step=3,
        policy_version=1,
        outcome=name,
        detail=detail,
        trained_step=trained,
        lag=3 if trained else None,
        score=1.0,
        reward=0.5,
        length=3,
    )


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(str(tmp_path))


def test_rows_read_back_also_after_a_restart(store: ObjectStore) -> None:
    log = OutcomeLog(store)
    log.append([outcome(), outcome(0, 1, "unscored", "error")])
    log.append([])
    OutcomeLog(store).append([outcome(1, 0, "expired")])
    assert OutcomeLog(store).read() == [
        outcome(),
        outcome(0, 1, "unscored", "error"),
        outcome(1, 0, "expired"),
    ]
    assert len(store.list(layout.OUTCOMES)) == 2


def test_a_rollout_gets_one_outcome(store: ObjectStore) -> None:
    log = OutcomeLog(store)
    with pytest.raises(StoreError, match="second outcome"):
        log.append([outcome(), outcome(0, 0, "late")])
    log.append([outcome()])
    for again in (log, OutcomeLog(store)):
        with pytest.raises(StoreError, match="3-worker-0-2-0/0"):
            again.append([outcome(0, 1), outcome(0, 0, "expired")])
    assert log.read() == [outcome()]
    assert log.has("3-worker-0-2-0", 0)
    assert not log.has("3-worker-0-2-0", 1)
    assert log.outcomes_of("3-worker-0-2-0") == {"trained"}


def test_a_log_with_doubles_or_other_bytes_is_refused(store: ObjectStore) -> None:
    first, second = OutcomeLog(store), OutcomeLog(store)
    first.append([outcome()])
    second._parts = 1
    second.append([outcome()])
    with pytest.raises(FormatError, match="two outcomes"):
        OutcomeLog(store)
    store.put(layout.outcomes_path(2), b"not parquet")
    with pytest.raises(FormatError, match="outcome part"):
        balance(store)


def test_the_balance_places_every_rollout_at_every_moment(store: ObjectStore) -> None:
    announced = dispatch(groups=3, size=2)
    store.put(layout.dispatch_path(3, "worker-0", 2), announced.to_json())
    store.put(layout.dispatch_path(3, "worker-1", 0), b"nonsense announces nothing")
    found = balance(store)
    assert (found.total.dispatched, found.total.in_flight) == (6, 6)
    assert found.holds
    ids = [f"3-worker-0-2-{k}" for k in range(3)]
    receipt = Receipt(
        "run-1",
        3,
        "worker-0",
        2,
        "0" * 64,
        "accepted",
        "",
        (
            GroupReceipt(ids[0], "signal", "", 2),
            GroupReceipt(ids[1], "signal", "", 2),
            GroupReceipt(ids[2], "zero_signal", "", 2),
        ),
    )
    store.put(layout.receipt_path(3, "worker-0", 2), receipt.to_json())
    found = balance(store)
    assert (found.total.carried, found.total.in_flight) == (4, 2)
    log = OutcomeLog(store)
    log.append([outcome(2, sample, "zero_signal") for sample in range(2)])
    store.put(
        layout.closed_path(4),
        Closed("run-1", 4, (ClosedGroup(ids[0], PATH, "0" * 64),), 1).to_json(),
    )
    found = balance(store)
    assert (found.total.carried, found.total.in_flight) == (2, 2)
    assert found.steps[3].outcomes == {"zero_signal": 2}
    log.append([outcome(0, sample) for sample in range(2)])
    found = balance(store)
    assert found.total.outcomes == {"trained": 2, "zero_signal": 2}
    assert (found.total.dispatched, found.total.carried, found.total.in_flight) == (6, 2, 0)
    assert found.holds


def test_the_balance_fails_on_an_outcome_of_nobodys_rollout(store: ObjectStore) -> None:
    store.put(layout.dispatch_path(3, "worker-0", 2), dispatch(groups=1, size=2).to_json())
    OutcomeLog(store).append([outcome(5, 0)])
    found = balance(store)
    assert not found.holds
    assert not found.steps[3].holds


def test_why_tells_a_life_in_order(store: ObjectStore) -> None:
    sample = "3-worker-0-2-1/0"
    with pytest.raises(StoreError, match="no node dispatched"):
        why(store, sample)
    store.put(layout.dispatch_path(3, "worker-0", 2), dispatch().to_json())
    assert [line.partition(" ")[0] for line in why(store, sample)] == [
        "dispatched",
        "not",
        "no",
        "no",
    ]
    data = write_submission(rows(), META)
    sha256 = read_submission(data).sha256
    store.put(PATH, data)
    groups = tuple(GroupReceipt(f"3-worker-0-2-{k}", "signal", "", 3) for k in range(2))
    receipt = Receipt("run-1", 3, "worker-0", 2, sha256, "accepted", "", groups)
    store.put(layout.receipt_path(3, "worker-0", 2), receipt.to_json())
    batch = tuple(ClosedGroup(group.id, PATH, sha256) for group in groups)
    store.put(layout.closed_path(4), Closed("run-1", 4, batch, 1).to_json())
    OutcomeLog(store).append([outcome(1, 0)])
    lines = why(store, sample)
    assert "by worker-0 for step 3" in lines[0]
    assert "version 1" in lines[0]
    assert sha256 in lines[1]
    assert "reward 0.5 (length -0.5, task 1)" in lines[1]
    assert lines[2] == "submission accepted; group signal (3 scored)"
    assert lines[3] == "in the batch of step 4, place 2 of 2"
    assert lines[4] == "outcome trained: in step 4 with lag 3"


def test_why_says_why_not(store: ObjectStore) -> None:
    store.put(layout.dispatch_path(3, "worker-0", 2), dispatch().to_json())
    store.put(PATH, b"not parquet")
    receipt = Receipt("run-1", 3, "worker-0", 2, "0" * 64, "rejected", "schema: cut off", ())
    store.put(layout.receipt_path(3, "worker-0", 2), receipt.to_json())
    row = replace(outcome(0, 1, "rejected", "schema"), score=None, reward=None)
    OutcomeLog(store).append([row])
    lines = why(store, "3-worker-0-2-0/1")
    assert "isn't what the receipt judged" in lines[1]
    assert lines[2] == "submission rejected: schema: cut off"
    assert lines[-1] == "outcome rejected(schema): it trained nothing"


@pytest.mark.parametrize(
    "text", ["", "x", "3-w-0-1", "3-w-0-1/x", "3-w-x-1/0", "3-1-2/0", "²-w-0-1/0"]
)
def test_what_is_no_sample_id_is_refused(store: ObjectStore, text: str) -> None:
    with pytest.raises(FormatError, match="sample id"):
        why(store, text)


READ = """
import os, sys
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import why
import pyarrow.parquet
before = set(os.listdir("/proc/self/task"))
why(ObjectStore(sys.argv[1]), "3-worker-0-2-0/1")
print(len(set(os.listdir("/proc/self/task")) - before))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="lists threads as Linux does")
def test_why_leaves_no_thread_that_could_abort_the_process_at_its_exit(
    store: ObjectStore, tmp_path: Path
) -> None:
    # `pyarrow.parquet.read_table` starts one of Arrow's: one exit in 60 was an abort
    store.put(layout.dispatch_path(3, "worker-0", 2), dispatch().to_json())
    store.put(PATH, write_submission(rows(), META))
    OutcomeLog(store).append([outcome(0, 1)])
    command = [sys.executable, "-c", READ, store.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
