"""The outcome log: the one final fate of every dispatched rollout, in Parquet parts.

Only the intake writes it, and never touches a part again; `outcomes`, `life` and reports read it.
A rollout has at most one row.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from prime_core.api.errors import FormatError, StoreError
from prime_core.store import layout
from prime_core.store.objects import ObjectStore

# DESIGN section 1; `filtered` is a group that an online filter dropped though its rewards differ.
OUTCOMES = (
    "trained",
    "surplus",
    "expired",
    "late",
    "zero_signal",
    "filtered",
    "rejected",
    "unscored",
    "duplicate",
    "lost",
)

SampleKey: TypeAlias = tuple[str, int]  # (group id, sample)


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One rollout's fate.

    Attributes:
        environment, task_id: as assigned.
        step, policy_version: as dispatched.
        detail: the check of `rejected`, the status of `unscored`, the filter of `filtered`, the
            node of `lost`; "" elsewhere.
        trained_step, lag: of `trained` only.
        score, reward: where the submission was read and has them.
        length: model tokens; 0 where the submission wasn't read.
    """

    group_id: str
    sample: int
    environment: str
    task_id: str
    node: str
    submission: int
    step: int
    policy_version: int
    outcome: str
    detail: str
    trained_step: int | None
    lag: int | None
    score: float | None
    reward: float | None
    length: int

    @property
    def key(self) -> SampleKey:
        """(group id, sample)."""
        return (self.group_id, self.sample)


_INTEGERS = (
    "sample",
    "submission",
    "step",
    "policy_version",
    "trained_step",
    "lag",
    "length",
)
_NULLABLE = ("trained_step", "lag", "score", "reward")


class OutcomeLog:
    """The outcomes of one run.

    Args:
        store: the run's store; the parts that it holds are read once.

    Raises:
        FormatError: a part that isn't one, or a rollout with two rows.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._parts = 0
        self._settled: dict[str, set[int]] = {}
        self._outcomes: dict[str, set[str]] = {}
        self._load()

    def append(self, rows: Sequence[OutcomeRow]) -> None:
        """Write rows as one part, durably; nothing for no rows.

        Raises:
            StoreError: a rollout has an outcome already; nothing is written then.
        """
        if not rows:
            return
        keys: set[SampleKey] = set()
        for row in rows:
            assert row.outcome in OUTCOMES, row.outcome
            if row.key in keys or self.has(row.group_id, row.sample):
                raise StoreError(
                    f"rollout {row.group_id}/{row.sample} would get a second outcome",
                    where=layout.outcomes_path(self._parts),
                    fix="one intake at a time may write outcomes; stop the other",
                )
            keys.add(row.key)
        self._store.put(layout.outcomes_path(self._parts), _encode(rows))
        self._parts += 1
        self._note(rows)

    def has(self, group_id: str, sample: int) -> bool:
        """Whether a rollout has its outcome."""
        return sample in self._settled.get(group_id, ())

    def outcomes_of(self, group_id: str) -> frozenset[str]:
        """The outcomes that rollouts of a group have."""
        return frozenset(self._outcomes.get(group_id, ()))

    def read(self) -> list[OutcomeRow]:
        """Every row, in the order written."""
        return [row for part in read_parts(self._store) for row in part]

    def _load(self) -> None:
        for rows in read_parts(self._store):
            for row in rows:
                if self.has(row.group_id, row.sample):
                    raise FormatError(
                        f"rollout {row.group_id}/{row.sample} has two outcomes",
                        where=layout.outcomes_path(self._parts),
                        fix="the log was written by two intakes; it can't be trusted",
                    )
                self._note([row])
            self._parts += 1

    def _note(self, rows: Sequence[OutcomeRow]) -> None:
        for row in rows:
            self._settled.setdefault(row.group_id, set()).add(row.sample)
            self._outcomes.setdefault(row.group_id, set()).add(row.outcome)


# --- parts ---------------------------------------------------------------------------------------


def read_parts(store: ObjectStore) -> Iterator[list[OutcomeRow]]:
    """The rows of every part, in order; FormatError names the part that isn't one."""
    for name in store.list(layout.OUTCOMES):
        path = f"{layout.OUTCOMES}/{name}"
        yield _decode(store.get(path), path)


def _schema() -> Any:
    import pyarrow as pa

    def kind(name: str) -> Any:
        if name in _INTEGERS:
            return pa.int32()
        return pa.float32() if name in ("score", "reward") else pa.string()

    names = OutcomeRow.__slots__
    return pa.schema([pa.field(name, kind(name), nullable=name in _NULLABLE) for name in names])


def _encode(rows: Sequence[OutcomeRow]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=_schema()), sink)
    return sink.getvalue()


def _decode(data: bytes, path: str) -> list[OutcomeRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(data)) as source:
            table = source.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"not an outcome part: {error}", where=path) from error
    if not table.schema.equals(_schema(), check_metadata=False):
        raise FormatError("not an outcome part: other columns", where=path)
    columns = (table.column(name).to_pylist() for name in OutcomeRow.__slots__)
    return [OutcomeRow(*values) for values in zip(*columns, strict=True)]
