"""The small JSON records of a run: dispatches, receipts, closed steps, task lists, the lock.

Every process reads them, each is written once by one process. A record that parses obeys its
bounds; anything else is a `FormatError`, and the same record always encodes to the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from prime_core.api.errors import FormatError

NODE_PATTERN = r"^[a-z0-9-]{1,64}\Z"  # DESIGN section 5; \Z because $ lets a newline through
_NODE = re.compile(NODE_PATTERN)
LIMIT = 64 * 1024 * 1024  # bytes of one record; a task list of a million tasks fits

MAX_ROLLOUTS = 65536  # rollouts of one submission
I32_MAX = 2**31 - 1

Count = Annotated[int, Field(ge=0, le=I32_MAX)]
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}\z")]
Name = Annotated[str, Field(min_length=1, max_length=256)]
Node = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}\z")]
Text = Annotated[str, Field(max_length=4096)]

Decision = Literal["accepted", "rejected", "late"]
GroupStatus = Literal["signal", "zero_signal", "filtered", "unscored"]
Key = tuple[int, str, int]  # (step, node, n): one submission

_STRICT = ConfigDict(extra="forbid", strict=True)
_R = TypeVar("_R", bound="Record")


class Record:
    """Base of the records: strict JSON in, deterministic JSON out."""

    def to_json(self) -> bytes:
        """UTF-8 JSON with sorted keys and no spaces; equal records give equal bytes."""
        payload = asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass
        text = json.dumps(
            payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()

    @classmethod
    def from_json(cls: type[_R], data: bytes, *, where: str | None = None) -> _R:
        """Parse one record.

        Args:
            data: what `to_json` wrote, at most `LIMIT` bytes.
            where: the object's path, for the message.

        Raises:
            FormatError: unknown or missing fields, wrong types, values out of bounds.
        """
        name = cls.__name__
        if len(data) > LIMIT:
            raise FormatError(f"a {name} of {len(data)} bytes is above {LIMIT}", where=where)
        try:
            record: _R = _adapters()[name].validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise FormatError(
                f"not a {name}: {field}: {first['msg']}",
                where=where,
                fix="the object was written by another version or damaged; it can't be used",
            ) from error
        return record


@lru_cache(maxsize=1)
def _adapters() -> dict[str, TypeAdapter[Any]]:
    return {record.__name__: TypeAdapter(record) for record in Record.__subclasses__()}


def is_node(name: str) -> bool:
    """Whether a node name has the form that file names and group ids allow."""
    return _NODE.match(name) is not None


@dataclass(frozen=True, config=_STRICT)
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


@dataclass(frozen=True, config=_STRICT)
class GroupReceipt:
    """The intake's word on one group of an accepted submission; only `signal` may train.

    Attributes:
        reason: the filter and its reason, or why it's unscored; "" for signal.
        scored: rollouts that carry a score.
    """

    id: Name
    status: GroupStatus
    reason: Text
    scored: Count


@dataclass(frozen=True, config=_STRICT)
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


@dataclass(frozen=True, config=_STRICT)
class ClosedGroup:
    """One group of a step's batch: its id, the submission's path in the store, the file's hash."""

    group_id: Name
    path: Name
    sha256: Hex32


@dataclass(frozen=True, config=_STRICT)
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


@dataclass(frozen=True, config=_STRICT)
class TaskList(Record):
    """The tasks of one environment that the offline filters kept, in assignment order.

    Attributes:
        label: the environment's label in the run config.
        dataset_digest: SHA-256 of the data set, hex, as the environment declares it.
        count: tasks of the data set before filtering.
        indices: the kept tasks' positions in the environment's list, ascending.
        task_ids: their ids, parallel to `indices`; what a rollout's task_id must be.
        score_range: lowest and highest score, as the environment declares it.
        digest: `task_list_digest` of all the above.
    """

    label: Name
    dataset_digest: Name
    count: Count
    indices: tuple[Count, ...]
    task_ids: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...]
    score_range: tuple[float, float]
    digest: Hex32

    @classmethod
    def build(
        cls,
        label: str,
        dataset_digest: str,
        count: int,
        indices: Sequence[int],
        task_ids: Sequence[str],
        score_range: tuple[float, float],
    ) -> TaskList:
        """Make a list with its digest.

        Raises:
            FormatError: an id or a name is empty or too long, as an environment may give any.
        """
        low, high = float(score_range[0]), float(score_range[1])
        digest = task_list_digest(label, dataset_digest, count, indices, task_ids, (low, high))
        try:
            return cls(
                label=label,
                dataset_digest=dataset_digest,
                count=count,
                indices=tuple(indices),
                task_ids=tuple(task_ids),
                score_range=(low, high),
                digest=digest,
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise FormatError(
                f"no task list can hold this: {field}: {first['msg']}",
                where=f"environment {label}",
                fix="correct the environment or its data",
            ) from error

    @model_validator(mode="after")
    def _is_consistent(self) -> TaskList:
        if len(self.indices) != len(self.task_ids):
            raise ValueError("indices and task_ids differ in length")
        if any(b <= a for a, b in zip(self.indices, self.indices[1:], strict=False)):
            raise ValueError("indices aren't ascending")
        if self.indices and self.indices[-1] >= self.count:
            raise ValueError("an index is beyond the data set")
        expected = task_list_digest(
            self.label,
            self.dataset_digest,
            self.count,
            self.indices,
            self.task_ids,
            self.score_range,
        )
        if self.digest != expected:
            raise ValueError("digest isn't that of the list")
        return self


def task_list_digest(
    label: str,
    dataset_digest: str,
    count: int,
    indices: Sequence[int],
    task_ids: Sequence[str],
    score_range: tuple[float, float],
) -> str:
    """SHA-256 (hex) over the list's JSON, which `lock.json` carries."""
    payload: list[Any] = [
        label,
        dataset_digest,
        count,
        list(indices),
        list(task_ids),
        list(score_range),
    ]
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, config=_STRICT)
class LockedPlugin:
    """One plugin that the run selected."""

    kind: Name
    name: Name
    distribution: Name
    version: Name


@dataclass(frozen=True, config=_STRICT)
class LockedPublication:
    """What a publisher signed of a distribution that the run uses.

    Attributes:
        wheel: SHA-256 (hex) of the wheel that it was installed from.
        record: SHA-256 (hex) of the signed record.
        publisher: the address that signed it.
        level: level of `prime-core check` that it was published at.
    """

    distribution: Name
    version: Name
    wheel: Hex32
    record: Hex32
    publisher: Name
    level: Name


@dataclass(frozen=True, config=_STRICT)
class Lock(Record):
    """What a run was started with; a resumed run must find the same.

    Attributes:
        plugins: every selected plugin.
        distributions: per environment label, the distributions of its interpreter and versions.
        task_digests: per environment label, the digest of its `TaskList`.
        engine_fingerprint: what the metadata of every submission must carry.
        seeds: named seeds, e.g. {"run": 0}.
        model_digest: SHA-256 (hex) of version 0's weights.
        config_digest: SHA-256 (hex) of the resolved config.
        publications: what publishers signed of the plugins' distributions, where they did.
    """

    run_id: Name
    plugins: tuple[LockedPlugin, ...]
    distributions: dict[str, dict[str, str]]
    task_digests: dict[str, Hex32]
    engine_fingerprint: Name
    seeds: dict[str, Annotated[int, Field(ge=0)]]
    model_digest: Hex32
    config_digest: Hex32
    publications: tuple[LockedPublication, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the record's bytes: the lock digest of every submission."""
        return hashlib.sha256(self.to_json()).hexdigest()
