"""A reader that follows a run in its store and reads every immutable object once.

Workers and the supervisor refresh it before they decide; a refresh costs a few listings of the
open steps and one read per new object.
"""

from __future__ import annotations

import logging
from typing import TypeVar

from prime_core.api.errors import FormatError
from prime_core.store import layout
from prime_core.store.counter import RunView, StepRules
from prime_core.store.objects import MESSAGE_LIMIT, ObjectStore
from prime_core.store.records import Closed, Dispatch, Key, Receipt

logger = logging.getLogger("prime_core.store")

HISTORY = 8  # closed steps kept before the first open one, for the acceptance rate

_R = TypeVar("_R", Dispatch, Receipt)


class StoreView(RunView):
    """A `RunView` that a refresh brings up to date.

    Args:
        store: the run's store.
        rules: the run's rules.
    """

    __slots__ = ("_frozen", "_odd", "_rules", "_store")

    def __init__(self, store: ObjectStore, rules: StepRules) -> None:
        super().__init__()
        self._store, self._rules = store, rules
        self._frozen: set[int] = set()
        self._odd: set[str] = set()

    def refresh(self) -> None:
        """Read what is new. Objects that break their format are logged once and left out."""
        self.newest_version = newest_sealed(self._store, self.newest_version)
        while self._store.exists(layout.closed_path(self.first_open)):
            self.first_open += 1
        oldest = max(0, self.first_open - HISTORY)
        for step in range(oldest, self.first_open):
            if step not in self.closed:
                self.closed[step] = read_closed(self._store, step)
        slack = self._rules.max_lag - self._rules.level
        for step in range(oldest, self.last_listed + 1):
            if step not in self._frozen:
                self._list(step)
            if step < self.first_open - slack:
                self._frozen.add(step)  # nothing of it can matter any more
        self._forget(oldest)

    @property
    def last_listed(self) -> int:
        """The newest step that any sealed version may work for."""
        return min(self._rules.steps - 1, self.newest_version + self._rules.max_lag)

    def _list(self, step: int) -> None:
        """Receipts first, dispatches last: each thing's predecessor is seen no later than it."""
        receipts = members(self._store, layout.receipts_dir(step), step)
        self.submissions |= members(self._store, layout.submissions_dir(step), step).keys()
        dispatches = members(self._store, layout.dispatches_dir(step), step)
        for key in receipts.keys() - self.receipts.keys():
            self._read(Receipt, layout.receipt_path(*key), key, self.receipts)
        for key in dispatches.keys() - self.dispatches.keys():
            self._read(Dispatch, layout.dispatch_path(*key), key, self.dispatches)

    def _read(self, record: type[_R], path: str, key: Key, into: dict[Key, _R]) -> None:
        if path in self._odd:
            return
        try:
            found = _record(self._store, record, path, key)
        except FormatError as error:
            self._odd.add(path)
            logger.warning("ignored: %s", error)
            return
        into[key] = found

    def _forget(self, oldest: int) -> None:
        for step in [step for step in self.closed if step < oldest]:
            del self.closed[step]
        for table in (self.dispatches, self.receipts):
            for key in [key for key in table if key[0] < oldest]:
                del table[key]
        self.submissions = {key for key in self.submissions if key[0] >= oldest}


def newest_sealed(store: ObjectStore, known: int = -1) -> int:
    """The newest sealed policy version; `known` and every version before it are sealed already."""
    if known < 0:
        names = (layout.parse_numbered(name) for name in store.folders(layout.POLICIES))
        numbers = sorted((number for number in names if number is not None), reverse=True)
        sealed = (n for n in numbers if store.exists(layout.policy_seal_path(n)))
        known = next(sealed, -1)
    while known >= 0 and store.exists(layout.policy_seal_path(known + 1)):
        known += 1
    return known


def members(store: ObjectStore, directory: str, step: int) -> dict[Key, str]:
    """Key and base name of a directory's dispatches, submissions or receipts; others left out."""
    found: dict[Key, str] = {}
    ending = ".parquet" if directory == layout.submissions_dir(step) else ".json"
    for name in store.list(directory):
        if not name.endswith(ending) or name.endswith(".sig.json"):
            continue
        try:
            node, n = layout.parse_member(name)
        except FormatError:
            continue
        found[step, node, n] = name
    return found


def read_closed(store: ObjectStore, step: int) -> Closed:
    """The batch of a closed step; FormatError, or StoreError where the step is open."""
    path = layout.closed_path(step)
    found = Closed.from_json(store.get(path), where=path)
    if found.step != step:
        raise FormatError(
            f"it closes step {found.step}",
            where=path,
            fix="restore the file from a copy of the run; a step is closed once",
        )
    return found


def read_dispatch(store: ObjectStore, key: Key) -> Dispatch | None:
    """A dispatch, or None where the object isn't one of its name; such a one announces nothing."""
    try:
        return _record(store, Dispatch, layout.dispatch_path(*key), key)
    except FormatError:
        return None


def read_receipt(store: ObjectStore, key: Key) -> Receipt:
    """A receipt; FormatError, or StoreError where there is none."""
    return _record(store, Receipt, layout.receipt_path(*key), key)


def step_numbers(store: ObjectStore) -> list[int]:
    """The steps that have any object, ascending."""
    numbers = (layout.parse_numbered(name) for name in store.folders(layout.STEPS))
    return sorted(number for number in numbers if number is not None)


def _record(store: ObjectStore, record: type[_R], path: str, key: Key) -> _R:
    found = record.from_json(store.get(path, MESSAGE_LIMIT), where=path)
    if found.key != key:
        raise FormatError(f"names {found.key}", where=path, fix="remove the object")
    return found
