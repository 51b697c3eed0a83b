"""Which groups a step's batch takes, and what becomes of the others: the intake's state machine.

Pure: receipts, closed steps and sealed versions go in, the next batch and every rollout's fate come
out. It is rebuilt from the store after a restart and then says the same.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from prime_core.store.counter import StepRules
from prime_core.store.layout import submission_path
from prime_core.store.records import Closed, ClosedGroup, GroupReceipt, Key, Receipt
from prime_core.store.shares import Filled


@dataclass(frozen=True, slots=True)
class Fate:
    """An outcome, its detail, and the step that trained it."""

    outcome: str
    detail: str = ""
    trained_step: int | None = None


@dataclass(slots=True)
class _Accepted:
    receipt: Receipt
    version: int
    last_step: int


class IntakeState:
    """Receipts, batches and versions of one run.

    Args:
        run_id: stands in every batch.
        rules: the run's rules.
    """

    def __init__(self, run_id: str, rules: StepRules) -> None:
        self.rules = rules
        self.first_open = 0
        self.newest_version = -1
        self._run_id = run_id
        self._accepted: dict[Key, _Accepted] = {}  # those that an open step may still take
        self._received: dict[tuple[int, str], set[int]] = {}
        self._contiguous: dict[tuple[int, str], int] = {}
        self._batched: dict[str, int] = {}  # group id -> step
        self._spent: set[str] = set()

    @property
    def ended(self) -> bool:
        """Whether the run is over: its last version is sealed."""
        return self.newest_version >= self.rules.steps

    def is_late(self, step: int, version: int) -> bool:
        """Whether no open step may take a submission made for `step` by `version`."""
        last = min(self.rules.last_step(step, version), self.rules.steps - 1)
        return last < self.first_open

    def receive(self, receipt: Receipt, version: int, spent: Collection[str] = ()) -> None:
        """Take a receipt in, once.

        Args:
            version: the policy version that its dispatch names.
            spent: its groups that have their outcome already, from an earlier end of the run.
        """
        place = (receipt.step, receipt.node)
        received = self._received.setdefault(place, set())
        assert receipt.n not in received, receipt.key
        received.add(receipt.n)
        n = self._contiguous.get(place, 0)
        while n in received:
            n += 1
        self._contiguous[place] = n
        if receipt.decision != "accepted":
            return
        self._spent.update(spent)
        last = self.rules.last_step(receipt.step, version)
        if last >= self.first_open:
            self._accepted[receipt.key] = _Accepted(receipt, version, last)

    def next_batch(self) -> Closed | None:
        """The batch of the first open step, or None where it isn't full or the run has no more.

        Candidates are groups with signal that the step may take, of submissions whose predecessors
        all have receipts, in (step, node, n, k) order: carried groups therefore come first. With
        one node the batch is a prefix of that order, whatever arrived when.
        """
        step = self.first_open
        if step >= self.rules.steps:
            return None
        groups, newest, filled = [], 0, Filled(self.rules.caps)
        for key, accepted in sorted(self._accepted.items()):
            if not (key[0] <= step <= accepted.last_step) or key[2] >= self._contiguous[key[:2]]:
                continue
            for group in accepted.receipt.groups:
                if not self._is_free(group) or filled.room(key[1]) < 1:
                    continue
                filled.add(key[1], 1)
                path = submission_path(*key)
                groups.append(ClosedGroup(group.id, path, accepted.receipt.sha256))
                newest = max(newest, accepted.version)
                if len(groups) == self.rules.groups_per_step:
                    return Closed(self._run_id, step, tuple(groups), newest)
        return None

    def close(self, closed: Closed) -> None:
        """Note that a step is closed with this batch."""
        assert closed.step == self.first_open, closed.step
        self._batched.update({group.group_id: closed.step for group in closed.groups})
        self.first_open += 1
        for key in [
            key for key, accepted in self._accepted.items() if accepted.last_step < self.first_open
        ]:
            del self._accepted[key]

    def step_of(self, group_id: str) -> int | None:
        """The step whose batch holds a group."""
        return self._batched.get(group_id)

    def available(self) -> int:
        """Groups with signal that wait for an open step."""
        return sum(
            self._is_free(group)
            for accepted in self._accepted.values()
            for group in accepted.receipt.groups
        )

    def fate(self, receipt: Receipt, version: int, group: GroupReceipt, status: str) -> Fate | None:
        """What became of one rollout of an accepted submission; None while that is open.

        Args:
            receipt: its submission's.
            version: the policy version that generated it.
            group: its group's entry in the receipt.
            status: its score status.
        """
        if status in ("abstained", "error"):
            return Fate("unscored", status)
        if group.status == "unscored":
            return Fate("unscored", "group")
        if group.status == "dropped":
            return Fate("unscored", "drop")
        if group.status != "signal":
            return Fate(group.status, group.reason if group.status == "filtered" else "")
        step = self._batched.get(group.id)
        if step is not None:
            if self.newest_version >= step + 1:
                return Fate("trained", trained_step=step)
            return Fate("surplus") if self.ended else None  # the run was cut short before it
        if self.rules.last_step(receipt.step, version) < self.first_open:
            return Fate("expired")
        return Fate("surplus") if self.ended else None

    def _is_free(self, group: GroupReceipt) -> bool:
        return (
            group.status == "signal"
            and group.id not in self._batched
            and group.id not in self._spent
        )
