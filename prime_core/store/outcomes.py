"""The balance of a run: where every dispatched rollout is, at any time.

`prime-core outcomes` and the supervisor ask it. It is an equation between what was dispatched and
what was counted elsewhere, never a remainder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prime_core.store import layout
from prime_core.store.life import why
from prime_core.store.objects import ObjectStore
from prime_core.store.outcome_log import (
    OUTCOMES,
    OutcomeLog,
    OutcomeRow,
    SampleKey,
    read_parts,
)
from prime_core.store.records import Dispatch, Receipt
from prime_core.store.view import members, read_closed, read_dispatch, read_receipt, step_numbers

__all__ = [
    "OUTCOMES",
    "Balance",
    "OutcomeLog",
    "OutcomeRow",
    "StepBalance",
    "balance",
    "why",
]


@dataclass(frozen=True, slots=True)
class StepBalance:
    """Where the rollouts dispatched for one step are.

    Attributes:
        dispatched: rollouts announced.
        outcomes: rows of the log by outcome.
        carried: in accepted groups with signal that no batch has taken yet.
        in_flight: being generated or judged, or in a batch whose step isn't trained yet.
    """

    dispatched: int
    outcomes: Mapping[str, int]
    carried: int
    in_flight: int

    @property
    def holds(self) -> bool:
        """Whether every dispatched rollout is in exactly one place."""
        return self.dispatched == sum(self.outcomes.values()) + self.carried + self.in_flight


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of a run, by step (of dispatch) and in total."""

    steps: Mapping[int, StepBalance]
    total: StepBalance

    @property
    def holds(self) -> bool:
        """Whether it holds for every step."""
        return all(step.holds for step in self.steps.values()) and self.total.holds


@dataclass(slots=True)
class _Tally:
    dispatched: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    carried: int = 0
    in_flight: int = 0

    def balance(self) -> StepBalance:
        ordered = {name: self.outcomes[name] for name in OUTCOMES if self.outcomes[name]}
        return StepBalance(self.dispatched, ordered, self.carried, self.in_flight)


def balance(store: ObjectStore) -> Balance:
    """Count a run's rollouts from its objects, at any time, while it runs or after.

    The log's rows are counted as they stand, so that a row of a rollout nobody dispatched, or a
    second row, breaks the equation instead of hiding in a remainder.

    Raises:
        FormatError: an object that breaks its format.
    """
    tallies: dict[int, _Tally] = {}
    total = _Tally()
    settled: set[SampleKey] = set()
    for rows in read_parts(store):  # before dispatches: every row's dispatch is then seen
        for row in rows:
            tally = tallies.setdefault(row.step, _Tally())
            for each in (tally, total):
                each.outcomes[row.outcome] += 1
            settled.add(row.key)
    batched = _batched_groups(store)
    for step in step_numbers(store):
        tally = tallies.setdefault(step, _Tally())
        for dispatch, receipt in _dispatched(store, step):
            carried, in_flight = _unsettled(dispatch, receipt, batched, settled)
            for each in (tally, total):
                each.dispatched += dispatch.groups * dispatch.group_size
                each.carried += carried
                each.in_flight += in_flight
    steps = {step: tallies[step].balance() for step in sorted(tallies)}
    return Balance(steps, total.balance())


def _unsettled(
    dispatch: Dispatch, receipt: Receipt | None, batched: set[str], settled: set[SampleKey]
) -> tuple[int, int]:
    """Rollouts of one submission without an outcome: (carried, in flight)."""
    carried = in_flight = 0
    signal = {group.id for group in receipt.groups if group.status == "signal"} if receipt else ()
    for k in range(dispatch.groups):
        group_id = f"{dispatch.step}-{dispatch.node}-{dispatch.n}-{k}"
        samples = range(dispatch.group_size)
        left = sum((group_id, sample) not in settled for sample in samples)
        if group_id in signal and group_id not in batched:
            carried += left
        else:
            in_flight += left
    return carried, in_flight


def _dispatched(store: ObjectStore, step: int) -> Iterator[tuple[Dispatch, Receipt | None]]:
    """Valid dispatches of a step with their receipts."""
    receipts = members(store, layout.receipts_dir(step), step)
    for key in sorted(members(store, layout.dispatches_dir(step), step)):
        dispatch = read_dispatch(store, key)
        if dispatch is None:
            continue
        yield dispatch, read_receipt(store, key) if key in receipts else None


def _batched_groups(store: ObjectStore) -> set[str]:
    found: set[str] = set()
    for step in step_numbers(store):
        if store.exists(layout.closed_path(step)):
            found |= {group.group_id for group in read_closed(store, step).groups}
    return found
