"""The small JSON records of a run: dispatches, receipts, closed steps, task lists, the lock.

Every process reads them, each is written once by one process. A record that parses obeys its
bounds; anything else is a `FormatError`, and the same record always encodes to the same bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from prime_core.store.prepared import (
    Lock,
    LockedPlugin,
    LockedPublication,
    TaskList,
    task_list_digest,
)
from prime_core.store.record import (
    LIMIT,
    MAX_ROLLOUTS,
    NODE_PATTERN,
    STRICT,
    Count,
    Hex32,
    Name,
    Node,
    Record,
    Text,
    is_node,
)

__all__ = [
    "LIMIT",
    "MAX_ROLLOUTS",
    "NODE_PATTERN",
    "Closed",
    "ClosedGroup",
    "Decision",
    "Dispatch",
    "GroupReceipt",
    "GroupStatus",
    "Key",
    "Lock",
    "LockedPlugin",
    "LockedPublication",
    "Receipt",
    "Record",
    "TaskList",
    "is_node",
    "task_list_digest",
]

Decision = Literal["accepted", "rejected", "late"]
GroupStatus = Literal["signal", "zero_signal", "filtered", "unscored", "dropped"]
Key = tuple[int, str, int]  # (step, node, n): one submission


@dataclass(frozen=True, config=STRICT)
class Dispatch(Record):
    """What a worker is about to generate; written before the first token.

    Attributes:
        policy_digest: seal of the version, hex.
        groups, group_size: groups * group_size rollouts are dispatched.
        node_class: decides the token limit.
    """

    run_id: Name
    step: Count
    node: Node
    n: Count
    policy_version: Count
    policy_digest: Hex32
    groups: Annotated[int, Field(ge=1, le=65536)]
    group_size: Annotated[int, Field(ge=2, le=65536)]
    node_class: Name

    @model_validator(mode="after")
    def _fits_a_file(self) -> Dispatch:
        if self.groups * self.group_size > MAX_ROLLOUTS:
            raise ValueError(f"announces more than {MAX_ROLLOUTS} rollouts")
        return self

    @property
    def key(self) -> Key:
        """(step, node, n)."""
        return (self.step, self.node, self.n)


@dataclass(frozen=True, config=STRICT)
class GroupReceipt:
    """The intake's word on one group of an accepted submission; only `signal` may train.

    Attributes:
        reason: the filter and its reason, why it's unscored, or the check that dropped it; "" for
            signal.
        scored: rollouts that carry a score.
    """

    id: Name
    status: GroupStatus
    reason: Text
    scored: Count


@dataclass(frozen=True, config=STRICT)
class Receipt(Record):
    """The intake's decision on one submission, written once.

    Attributes:
        sha256: of the bytes that were judged, hex.
        reason: the check that refused it and its message; "" where accepted.
        groups: one entry a group, in order; empty unless accepted.
    """

    run_id: Name
    step: Count
    node: Node
    n: Count
    sha256: Hex32
    decision: Decision
    reason: Text
    groups: tuple[GroupReceipt, ...]

    @model_validator(mode="after")
    def _groups_only_where_accepted(self) -> Receipt:
        if self.decision != "accepted" and self.groups:
            raise ValueError(f"a {self.decision} submission has no group decisions")
        return self

    @property
    def key(self) -> Key:
        """(step, node, n)."""
        return (self.step, self.node, self.n)


@dataclass(frozen=True, config=STRICT)
class ClosedGroup:
    """One group of a step's batch: its id, the submission's path in the store, the file's hash."""

    group_id: Name
    path: Name
    sha256: Hex32


@dataclass(frozen=True, config=STRICT)
class Closed(Record):
    """The batch of a step in training order; whoever trains the step trains exactly this.

    Attributes:
        closed_at_version: the newest policy version in the batch, before whose seal the step
            couldn't have closed. It depends on the batch alone, so that equal batches give equal
            bytes.
    """

    run_id: Name
    step: Count
    groups: tuple[ClosedGroup, ...]
    closed_at_version: Count

    @model_validator(mode="after")
    def _no_group_twice(self) -> Closed:
        if len({group.group_id for group in self.groups}) != len(self.groups):
            raise ValueError("a group stands twice in the batch")
        return self
