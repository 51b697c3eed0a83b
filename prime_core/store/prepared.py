"""The records that a run's preparation writes: its task lists and its lock.

Read through `prime_core.store.records`; every process holds itself to them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from prime_core.api.errors import FormatError
from prime_core.store.record import STRICT, Count, Hex32, Name, Record


@dataclass(frozen=True, config=STRICT)
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


@dataclass(frozen=True, config=STRICT)
class LockedPlugin:
    """One plugin that the run selected."""

    kind: Name
    name: Name
    distribution: Name
    version: Name


@dataclass(frozen=True, config=STRICT)
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


@dataclass(frozen=True, config=STRICT)
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
