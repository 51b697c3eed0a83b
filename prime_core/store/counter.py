"""How far generation may run ahead, and which step new work is for.

Workers ask `next_step` before every dispatch, the intake closes steps by the same `StepRules`.
Everything here is a pure function of what the store holds: no clock, no file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prime_core.store.records import Closed, Dispatch, Key, Receipt
from prime_core.store.shares import Caps, Filled

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

RECENT_RECEIPTS = 64  # the acceptance rate is that of their groups
MIN_ACCEPTANCE = 1 / 16  # a run of bad luck makes a worker over-dispatch 16-fold at most
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StepRules:
    """The numbers of a run that decide who may serve which step (DESIGN section 1, async level).

    Attributes:
        caps: how much of a batch one node and provider may fill; None for no limit.
    """

    steps: int
    groups_per_step: int
    level: int
    max_lag: int
    caps: Caps | None = None

    @classmethod
    def from_config(cls, config: RunConfig) -> StepRules:
        """The rules of a run config."""
        return cls(
            steps=config.trainer.steps,
            groups_per_step=config.trainer.groups_per_step,
            level=config.async_.level,
            max_lag=config.async_.max_lag,
            caps=Caps.from_config(config),
        )

    def newest_version(self, step: int) -> int:
        """The newest version that may generate new work for a step: it lags by min(step, level)."""
        return step - min(step, self.level)

    def oldest_version(self, step: int) -> int:
        """The oldest version that may, never below 0."""
        return max(0, step - self.max_lag)

    def allows(self, step: int, version: int) -> bool:
        """Whether new work for a step may come from a version."""
        return self.oldest_version(step) <= version <= self.newest_version(step)

    def version_for(
        self, step: int, newest: int, held: Collection[int] | None = None
    ) -> int | None:
        """The newest allowed version up to `newest` (and among `held`), or None."""
        found = min(newest, self.newest_version(step))
        if held is not None:
            found = max((version for version in held if version <= found), default=-1)
        return found if found >= 0 and self.allows(step, found) else None

    def last_step(self, step: int, version: int) -> int:
        """The last step that a group made for `step` by `version` may serve.

        A group serves step t as long as t - version <= max, and at most max - level steps after its
        own: so nothing is carried where max = level, also in the first steps, whose lag is below
        the level. That is what makes batches independent of arrival times there.
        """
        return min(version + self.max_lag, step + self.max_lag - self.level)


@dataclass(slots=True)
class RunView:
    """What one process knows of a run; `StoreView` fills it from the store.

    Attributes:
        first_open: the smallest step that isn't closed; every smaller one is.
        newest_version: the newest sealed version, -1 before version 0.
        dispatches, receipts, submissions: of the open steps and a few closed ones before them.
        closed: the batches of those closed steps.
    """

    first_open: int = 0
    newest_version: int = -1
    dispatches: dict[Key, Dispatch] = field(default_factory=dict)
    receipts: dict[Key, Receipt] = field(default_factory=dict)
    submissions: set[Key] = field(default_factory=set)
    closed: dict[int, Closed] = field(default_factory=dict)

    def next_index(self, step: int, node: str) -> int:
        """The index of a node's next submission for a step: the smallest that nobody took.

        Somebody else may have put a file under the node's name. Dispatching its index again would
        end in two submissions of one name; leaving a gap would hold up all that come after it.
        """
        tables = (self.dispatches, self.receipts, self.submissions)
        used = {n for table in tables for s, owner, n in table if (s, owner) == (step, node)}
        return next(n for n in range(len(used) + 1) if n not in used)

    def unfinished(self, node: str, rules: StepRules) -> list[Dispatch]:
        """A node's dispatches that it hasn't submitted and that may still train, oldest first.

        A restarted worker generates these again before anything else.
        """
        return [
            dispatch
            for key, dispatch in sorted(self.dispatches.items())
            if dispatch.node == node
            and key not in self.submissions
            and key not in self.receipts
            and rules.last_step(dispatch.step, dispatch.policy_version) >= self.first_open
        ]


@dataclass(frozen=True, slots=True)
class Work:
    """New work: the step it is for and the policy version that generates it.

    Attributes:
        groups: how many would fill the expected batch at the step's own acceptance rate so far; a
            submission of more than these is mostly waste. Not part of equality: how much, not what.
    """

    step: int
    version: int
    groups: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """No work now, and for whom the node waits; `over` where no step is left to work for."""

    reason: str
    over: bool = False


def next_step(
    view: RunView,
    rules: StepRules,
    *,
    nodes: Collection[str] | None = None,
    held: Collection[int] | None = None,
    node: str | None = None,
) -> Work | Wait:
    """The smallest open step whose expected batch isn't full and that a version may work for.

    Args:
        view: as fresh as the caller can make it.
        nodes: nodes that still work; what others dispatched and didn't submit isn't expected any
            more. None: all.
        held: versions that this node can load. None: every sealed one.
        node: who asks; a step in which it has its share already has no work for it.
    """
    if view.first_open >= rules.steps:
        return Wait("every step of the run is closed", over=True)
    wait: Wait | None = None
    shares: dict[int, Filled] = {}
    expected = expected_batches(view, rules, nodes, shares)
    for step in range(view.first_open, rules.steps):
        if rules.version_for(step, view.newest_version) is None:
            needed = rules.oldest_version(step)
            return wait or Wait(f"policy version {needed}, which step {step} needs")
        if expected.get(step, 0.0) >= rules.groups_per_step - _ROUNDING:
            continue
        room = shares[step].room(node) if node is not None and step in shares else math.inf
        if room < _ROUNDING:
            continue
        version = rules.version_for(step, view.newest_version, held)
        if version is not None:
            groups = min(rules.groups_per_step - expected.get(step, 0.0), room)
            missing = groups / step_rate(view, step)
            return Work(step, version, math.ceil(missing - _ROUNDING))
        wait = wait or Wait(f"a policy version that step {step} allows and this node holds")
    return wait or Wait("receipts: every step has its expected batch")


def acceptance_rate(view: RunView, node: str | None = None) -> float:
    """Share of groups with signal in the latest receipts: 1 before any, at least 1/16.

    Late submissions say nothing about groups and don't count; refused ones count as all bad.

    Args:
        node: whose receipts count, so that one whose files are refused holds up nobody else; those
            of all where it has none. None: all.
    """
    judged = [receipt for receipt in view.receipts.values() if receipt.decision != "late"]
    judged = [receipt for receipt in judged if receipt.node == node] or judged
    judged.sort(key=lambda receipt: (receipt.step, receipt.n, receipt.node))
    groups = signal = 0
    for receipt in judged[-RECENT_RECEIPTS:]:
        dispatch = view.dispatches.get(receipt.key)
        groups += len(receipt.groups) or (dispatch.groups if dispatch else 0)
        signal += sum(group.status == "signal" for group in receipt.groups)
    return max(signal / groups, MIN_ACCEPTANCE) if groups else 1.0


def step_rate(view: RunView, step: int) -> float:
    """Share of groups with signal in the receipts of one step: 1 before any, at least 1/16.

    Of one step alone, because with one worker that is all its earlier work for the step, whatever
    else has arrived: so the size of a submission doesn't depend on the moment of asking.
    """
    judged = [receipt for key, receipt in view.receipts.items() if key[0] == step]
    groups = sum(len(receipt.groups) for receipt in judged)
    signal = sum(group.status == "signal" for receipt in judged for group in receipt.groups)
    return max(signal / groups, MIN_ACCEPTANCE) if groups else 1.0


def expected_batches(
    view: RunView,
    rules: StepRules,
    nodes: Collection[str] | None = None,
    shares: dict[int, Filled] | None = None,
) -> dict[int, float]:
    """Groups that each open step can expect, filled in step order, at most its need.

    Accepted groups with signal count 1 each, those of work without a receipt the acceptance rate of
    its node; what a step doesn't need goes to the next that it may serve.

    Args:
        shares: filled with what each node has of each step.
    """
    batched = {group.group_id for closed in view.closed.values() for group in closed.groups}
    rates: dict[str, float] = {}
    supply: list[tuple[int, int, str, float]] = []  # (step, last step, node, groups)
    for key, dispatch in sorted(view.dispatches.items()):
        last = rules.last_step(dispatch.step, dispatch.policy_version)
        receipt, node = view.receipts.get(key), dispatch.node
        if last < view.first_open or (receipt and receipt.decision != "accepted"):
            continue
        if receipt:
            supply.append((dispatch.step, last, node, _signal(receipt, batched)))
        elif _is_awaited(view, key, nodes):
            rate = rates.setdefault(node, acceptance_rate(view, node))
            supply.append((dispatch.step, last, node, dispatch.groups * rate))
    return _fill(supply, view.first_open, rules, {} if shares is None else shares)


def _is_awaited(view: RunView, key: Key, nodes: Collection[str] | None) -> bool:
    """Whether work without a receipt still comes: of a node at work, or a file that is there.

    A file of a node that nobody vouches for waits for its predecessors; where one of them never
    came, it would hold up everybody who expects it.
    """
    step, node, n = key
    if nodes is None or node in nodes:
        return True
    came = (
        (step, node, m) in view.submissions or (step, node, m) in view.receipts for m in range(n)
    )
    return key in view.submissions and all(came)


def _signal(receipt: Receipt, batched: set[str]) -> float:
    usable = (group.status == "signal" and group.id not in batched for group in receipt.groups)
    return float(sum(usable))


def _fill(
    supply: Iterable[tuple[int, int, str, float]],
    first_open: int,
    rules: StepRules,
    shares: dict[int, Filled],
) -> dict[int, float]:
    filled: dict[int, float] = {}
    for step, last, node, groups in supply:
        left = groups
        for target in range(max(step, first_open), min(last, rules.steps - 1) + 1):
            share = shares.setdefault(target, Filled(rules.caps))
            need = rules.groups_per_step - filled.get(target, 0.0)
            taken = max(0.0, min(left, need, share.room(node)))
            filled[target] = filled.get(target, 0.0) + taken
            share.add(node, taken)
            left -= taken
    return filled
