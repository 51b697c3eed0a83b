"""A submission's bytes: rows to Parquet and back, strictly.

Workers write them, the intake and the trainer read them; the bytes come from machines nobody
trusts, so a reader bounds what it will allocate before it decodes, and raises `FormatError` only.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import FormatError
from prime_core.store.parquet import check_layout, key_values, read_footer
from prime_core.store.records import MAX_ROLLOUTS
from prime_core.store.schema import (
    COLUMNS,
    METADATA_KEYS,
    SCHEMA_ID,
    RolloutRow,
    SubmissionMeta,
    arrow_schema,
    check_rows,
    split_group_id,
)
from prime_core.store.thrift import Struct

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Bounds",
    "RolloutRow",
    "Submission",
    "SubmissionMeta",
    "read_submission",
    "write_submission",
]

FILE_LIMIT = 256 * 2**20  # bytes of one file
EXPANSION = 4  # decoded bytes allowed per byte of the limit
MAX_METADATA = 4096  # characters of one metadata value
# What a row and one of its tokens decode to at most, a value counted 4 bytes whatever its encoding:
# ids, log-probabilities, mask, turn ends, levels and 258 bytes of proof for 32 tokens are below 48,
# and what `schema` permits of names and reward parts is below 56 KiB.
_HEADERS = 2**20
ROW_BYTES = 2**16
TOKEN_BYTES = 64


@dataclass(frozen=True, slots=True)
class Submission:
    """A file that obeys the format. `rows` are ordered by (k, sample); `sha256` is hex."""

    rows: tuple[RolloutRow, ...]
    meta: SubmissionMeta
    sha256: str

    def groups(self) -> dict[str, tuple[RolloutRow, ...]]:
        """Rows by group id, in order."""
        found: dict[str, list[RolloutRow]] = {}
        for row in self.rows:
            found.setdefault(row.group_id, []).append(row)
        return {group_id: tuple(rows) for group_id, rows in found.items()}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the largest honest submission of a run holds.

    Attributes:
        tokens: of one row, prompt and environment's words included.
    """

    rows: int
    tokens: int

    @property
    def decoded(self) -> int:
        """Bytes that such a file decodes to at most."""
        return self.rows * (ROW_BYTES + TOKEN_BYTES * self.tokens)


def write_submission(rows: Sequence[RolloutRow], meta: SubmissionMeta) -> bytes:
    """Encode rows, ordered by (k, sample); the same rows and metadata give the same bytes.

    Raises:
        FormatError: a row that a reader would refuse; names row and reason.
    """
    ordered = sorted(rows, key=lambda row: (split_group_id(row) or 0, row.sample))
    table = _table(ordered)
    check_rows(_rows(table))
    return _encode_table(table, _file_metadata(meta))


def read_submission(
    data: bytes, *, limit: int = FILE_LIMIT, bounds: Bounds | None = None
) -> Submission:
    """Decode bytes that nobody vouches for.

    Args:
        data: the whole file.
        limit: largest file in bytes; decoded values may take `EXPANSION` times as much.
        bounds: of the run, where it is known: what says more isn't decoded at all.

    Raises:
        FormatError: names row and reason; no other exception leaves this function.
    """
    rows_limit, decoded = MAX_ROLLOUTS, EXPANSION * limit
    if bounds is not None:
        rows_limit, decoded = min(rows_limit, bounds.rows), min(decoded, bounds.decoded)
    if len(data) > min(limit, decoded + _HEADERS):
        raise FormatError(f"a submission of {len(data)} bytes is above {min(limit, decoded)}")
    footer = check_layout(data, _template(), max_rows=rows_limit, limit=decoded)
    meta = _metadata(key_values(footer))
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(data)) as source:
            table = source.read(use_threads=False)
        table.validate(full=True)
        rows = _rows(table)
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        raise FormatError(
            f"its pages can't be decoded: {str(error)[:200]}", fix="refuse the file"
        ) from error
    check_rows(rows)
    return Submission(rows, meta, hashlib.sha256(data).hexdigest())


def _file_metadata(meta: SubmissionMeta) -> dict[str, str]:
    metadata = {"schema": SCHEMA_ID, **asdict(meta)}
    for key, value in metadata.items():
        if not 0 < len(value) <= MAX_METADATA:
            raise FormatError(f"is empty or above {MAX_METADATA} characters", where=key)
    return metadata


def _table(rows: Sequence[RolloutRow]) -> pa.Table:
    import pyarrow as pa

    try:
        table = pa.Table.from_pylist([_encode(row) for row in rows], schema=arrow_schema())
        nulls = [
            field.name for field in table.schema if _has_odd_null(table.column(field.name), field)
        ]
        if nulls:
            raise ValueError(f"null in {', '.join(nulls)}")
        return table
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise FormatError(
            f"rows don't fit the schema {SCHEMA_ID}: {error}", fix="fix the code that made them"
        ) from error


def _has_odd_null(column: pa.ChunkedArray, field: pa.Field) -> bool:
    """Arrow takes None for a value that its schema says can't be null."""
    import pyarrow as pa

    if column.null_count and not field.nullable:
        return True
    whole = column.combine_chunks()
    chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    if pa.types.is_map(field.type):
        return any(chunk.keys.null_count or chunk.items.null_count for chunk in chunks)
    return pa.types.is_list(field.type) and any(chunk.values.null_count for chunk in chunks)


def _encode_table(table: pa.Table, metadata: dict[str, str]) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink,
        table.schema,
        version="2.6",
        data_page_version="1.0",
        use_dictionary=False,
        compression="zstd",
        write_statistics=False,
        store_schema=False,  # Arrow's own copy of the schema could smuggle other types in
    ) as writer:
        writer.write_table(table, row_group_size=MAX_ROLLOUTS)
        writer.add_key_value_metadata(metadata)
    return sink.getvalue()


@lru_cache(maxsize=1)
def _template() -> Struct:
    """The footer of a file that we wrote: the layout that every submission must have."""
    import pyarrow as pa

    blank: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "float": 0.0, "binary": b""}
    row = {field.name: blank.get(str(field.type), []) for field in arrow_schema()}
    table = pa.Table.from_pylist([row], schema=arrow_schema())
    return read_footer(_encode_table(table, {"schema": SCHEMA_ID}))[0]


def _metadata(values: dict[str, str]) -> SubmissionMeta:
    if set(values) != set(METADATA_KEYS):
        odd = sorted(set(values) ^ set(METADATA_KEYS))
        raise FormatError(f"file metadata differs in {', '.join(odd)[:200]}")
    if values["schema"] != SCHEMA_ID:
        raise FormatError(f"schema is {values['schema'][:100]!r}, not {SCHEMA_ID!r}")
    if any(not 0 < len(value) <= MAX_METADATA for value in values.values()):
        raise FormatError(f"file metadata is empty or above {MAX_METADATA} characters")
    return SubmissionMeta(**{field.name: values[field.name] for field in fields(SubmissionMeta)})


def _encode(row: RolloutRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in COLUMNS}
    values["reward_parts"] = sorted(row.reward_parts.items())
    return values


def _rows(table: pa.Table) -> tuple[RolloutRow, ...]:
    columns = {name: table.column(name).to_pylist() for name in COLUMNS}
    parts = columns["reward_parts"]
    columns["reward_parts"] = [dict(items) for items in parts]
    for index, items in enumerate(parts):
        if len(columns["reward_parts"][index]) != len(items):
            raise FormatError("names a part twice", where=f"row {index}, reward_parts")
    return tuple(RolloutRow(*values) for values in zip(*columns.values(), strict=True))
