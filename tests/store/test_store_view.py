"""The store view: follows a run, reads each object once, sees causes no later than effects."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from rollout_rows import dispatch

from prime_core.api.errors import FormatError
from prime_core.store import layout
from prime_core.store.counter import StepRules, Work, next_step
from prime_core.store.objects import ObjectStore
from prime_core.store.records import Closed, ClosedGroup, GroupReceipt, Receipt
from prime_core.store.view import HISTORY, StoreView, newest_sealed, read_closed

HEX = "ab" * 32


class CountingStore(ObjectStore):
    """Counts what is read."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.reads: Counter[str] = Counter()

    def get(self, path: str, limit: int | None = None) -> bytes:
        self.reads[path] += 1
        return super().get(path, limit)


def seal(store: ObjectStore, version: int) -> None:
    store.put(layout.policy_seal_path(version), b"sealed")


def receive(store: ObjectStore, step: int, n: int) -> None:
    made = dispatch(groups=2, step=step, n=n, policy_version=max(0, step - 1))
    store.put(layout.dispatch_path(*made.key), made.to_json())
    store.put(layout.submission_path(*made.key), b"rows")
    groups = tuple(GroupReceipt(f"{step}-worker-0-{n}-{k}", "signal", "", 4) for k in range(2))
    receipt = Receipt("run-1", *made.key, HEX, "accepted", "", groups)
    store.put(layout.receipt_path(*made.key), receipt.to_json())


def close(store: ObjectStore, step: int) -> None:
    groups = tuple(ClosedGroup(f"{step}-worker-0-0-{k}", "p", HEX) for k in range(2))
    store.put(layout.closed_path(step), Closed("run-1", step, groups, 0).to_json())


def test_newest_sealed_counts_only_whole_versions(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    assert newest_sealed(store) == -1
    seal(store, 0)
    seal(store, 1)
    store.put(layout.policy_header_path(2), b"begun")
    assert newest_sealed(store) == 1
    assert newest_sealed(store, 0) == 1
    seal(store, 2)
    assert newest_sealed(store, 1) == 2


def test_a_refresh_reads_each_object_once(tmp_path: Path) -> None:
    store = CountingStore(str(tmp_path))
    view = StoreView(store, StepRules(20, 2, 1, 1))
    view.refresh()
    assert next_step(view, StepRules(20, 2, 1, 1)) is not None
    seal(store, 0)
    receive(store, 0, 0)
    for _ in range(3):
        view.refresh()
    assert view.receipts.keys() == view.dispatches.keys() == {(0, "worker-0", 0)}
    assert view.submissions == {(0, "worker-0", 0)}
    assert next_step(view, StepRules(20, 2, 1, 1)) == Work(1, 0)
    close(store, 0)
    for _ in range(3):
        view.refresh()
    assert view.first_open == 1
    assert set(store.reads.values()) == {1}
    assert view.next_index(0, "worker-0") == 1
    assert view.next_index(1, "worker-0") == 0
    # a file that nobody dispatched takes its name, but leaves no gap before it
    store.put(layout.submission_path(0, "worker-0", 1), b"foreign")
    store.put(layout.submission_path(1, "worker-0", 7), b"foreign")
    other = StoreView(store, StepRules(20, 2, 1, 1))
    other.refresh()
    assert other.next_index(0, "worker-0") == 2
    assert other.next_index(1, "worker-0") == 0


def test_a_view_made_late_says_the_same_as_one_that_followed(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    rules = StepRules(40, 2, 1, 1)
    followed = StoreView(store, rules)
    seal(store, 0)
    for step in range(12):
        receive(store, step, 0)
        followed.refresh()
        close(store, step)
        seal(store, step + 1)
        followed.refresh()
    fresh = StoreView(store, rules)
    fresh.refresh()
    assert (fresh.first_open, fresh.newest_version) == (12, 12)
    assert fresh.receipts == followed.receipts
    assert fresh.dispatches == followed.dispatches
    assert fresh.closed == followed.closed
    assert min(step for step, _, _ in fresh.receipts) == 12 - HISTORY


def test_what_breaks_its_format_or_name_is_left_out(tmp_path: Path) -> None:
    store = CountingStore(str(tmp_path))
    seal(store, 0)
    store.put(layout.dispatch_path(0, "worker-0", 0), b"garbage")
    store.put(layout.dispatch_path(0, "worker-0", 1), dispatch(step=0, n=5).to_json())
    store.put(f"{layout.dispatches_dir(0)}/odd.json", b"x")
    view = StoreView(store, StepRules(5, 2, 0, 0))
    view.refresh()
    view.refresh()
    assert view.dispatches == {}
    assert set(store.reads.values()) == {1}


def test_the_record_of_another_step_closes_none(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    close(store, 0)
    store.put(layout.closed_path(1), store.get(layout.closed_path(0)))
    assert read_closed(store, 0).step == 0
    with pytest.raises(FormatError, match=r"steps/000001/closed.json: it closes step 0"):
        read_closed(store, 1)
