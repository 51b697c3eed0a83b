"""Submission bytes: deterministic, read back equal, and hostile ones are a FormatError only."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rollout_rows import META, row, rows

from prime_core.api.errors import FormatError
from prime_core.store.parquet import read_footer
from prime_core.store.schema import MAX_TEXT, SCHEMA_ID, SubmissionMeta, arrow_schema
from prime_core.store.submission import (
    Bounds,
    Submission,
    read_submission,
    write_submission,
)

VALID = write_submission(rows(), META)
KEY_VALUES = {"schema": SCHEMA_ID, "run_id": "r", "lock_digest": "l", "engine_fingerprint": "e"}


def parquet(
    table: pa.Table | None = None, metadata: dict[str, str] | None = None, **options: Any
) -> bytes:
    """A file that differs from ours in what the arguments say."""
    group_size = options.pop("row_group_size", None)
    plain: dict[str, Any] = {
        "version": "2.6",
        "data_page_version": "1.0",
        "use_dictionary": False,
        "compression": "zstd",
        "write_statistics": False,
        "store_schema": False,
    }
    table = good_table() if table is None else table
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **{**plain, **options}) as writer:
        writer.write_table(table, row_group_size=group_size)
        writer.add_key_value_metadata(KEY_VALUES if metadata is None else metadata)
    return sink.getvalue()


def good_table() -> pa.Table:
    return pq.read_table(pa.BufferReader(VALID)).replace_schema_metadata(None)


def test_rows_read_back_with_metadata_and_hash() -> None:
    found = read_submission(VALID)
    assert list(found.rows) == rows()
    assert found.meta == META
    assert found.sha256 == hashlib.sha256(VALID).hexdigest()
    assert {key: len(group) for key, group in found.groups().items()} == {
        "3-worker-0-2-0": 4,
        "3-worker-0-2-1": 4,
    }


def test_the_same_rows_give_the_same_bytes_in_any_order() -> None:
    assert write_submission(rows()[::-1], META) == VALID
    parts = {"length": -0.5, "task": 1.0}
    assert write_submission([row(), row(0, 1)], META) == write_submission(
        [row(reward_parts=parts), row(0, 1)], META
    )


def test_groups_beyond_nine_are_ordered_by_number() -> None:
    found = read_submission(write_submission(rows(groups=12), META))
    assert [each.group_id for each in found.rows[::4]] == [f"3-worker-0-2-{k}" for k in range(12)]


@pytest.mark.parametrize(
    "changes",
    [
        {"score": 1e39},
        {"sample": 2**31},
        {"sampling_seed": 2**63},
        {"completion_tokens": [1, 2, None]},
        {"completion_logprobs": ["x", 0.0, 0.0]},
        {"turn_ends": [2]},
    ],
)
def test_the_writer_refuses_what_a_reader_would(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        write_submission([row(**changes), row(0, 1)], META)


def test_the_writer_refuses_empty_metadata() -> None:
    with pytest.raises(FormatError):
        write_submission(rows(), SubmissionMeta("run", "", "engine"))


def test_a_file_like_ours_by_another_hand_is_read() -> None:
    assert read_submission(parquet()).rows == tuple(rows())
    assert read_submission(parquet(compression="none")).rows == tuple(rows())
    assert read_submission(parquet(data_page_size=64)).rows == tuple(rows())


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("metadata differs", parquet(metadata={})),
        ("metadata differs", parquet(metadata={**KEY_VALUES, "odd": "1"})),
        ("schema is", parquet(metadata={**KEY_VALUES, "schema": "prime-core/rollout/2"})),
        ("empty or above", parquet(metadata={**KEY_VALUES, "run_id": ""})),
        ("ARROW:schema", parquet(store_schema=True)),
        ("codec", parquet(compression="gzip")),
        ("never write", parquet(use_dictionary=True)),
        ("encodings|never write", parquet(data_page_version="2.0")),
        ("never write", parquet(write_statistics=True)),
        ("columns differ", parquet(good_table().drop_columns(["proofs"]))),
        ("columns differ", parquet(good_table().append_column("x", pa.array([1] * 8)))),
        ("columns differ", parquet(good_table().select(arrow_schema().names[::-1]))),
        (
            "columns differ",
            parquet(good_table().rename_columns(["env", *arrow_schema().names[1:]])),
        ),
        ("one row group|no rows", parquet(good_table().slice(0, 0))),
        ("samples 0", parquet(good_table().slice(1))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_files_are_refused_with_the_reason(reason: str, data: bytes) -> None:
    with pytest.raises(FormatError, match=reason):
        read_submission(data)


def test_several_row_groups_are_refused() -> None:
    with pytest.raises(FormatError, match="one row group"):
        read_submission(parquet(row_group_size=2))


def test_wrong_types_and_nullability_are_refused() -> None:
    schema = arrow_schema()
    for index, kind in ((3, pa.int64()), (0, pa.large_binary()), (16, pa.float64())):
        field = schema.field(index)
        other = schema.set(index, pa.field(field.name, kind, nullable=False))
        with pytest.raises(FormatError, match="columns differ"):
            read_submission(parquet(good_table().cast(other)))
    loose = schema.set(0, schema.field(0).with_nullable(True))
    with pytest.raises(FormatError, match="columns differ"):
        read_submission(parquet(good_table().cast(loose)))


def test_files_above_a_limit_are_refused_before_they_are_decoded() -> None:
    with pytest.raises(FormatError, match="above 100"):
        read_submission(VALID, limit=100)
    tokens = 200_000
    long = replace(
        row(),
        max_tokens=tokens,
        completion_tokens=[5] * tokens,
        completion_mask=[True] * tokens,
        completion_logprobs=[-1.0] * tokens,
        turn_ends=[tokens],
    )
    bomb = write_submission([long, replace(long, sample=1)], META)
    assert len(bomb) < 8192
    with pytest.raises(FormatError, match="decodes to more"):
        read_submission(bomb, limit=8192)


def test_what_the_writer_takes_is_within_the_bounds_of_a_reader_that_knows_the_run() -> None:
    """Names and parts as large as they may be, of few tokens: else an honest file is refused."""
    wide = "\U0001f600"  # four bytes
    names = [f"{i:02d}" + wide * 63 + "xx" for i in range(64)]
    largest = {
        "environment": wide * MAX_TEXT,
        "task_id": wide * MAX_TEXT,
        "reward_parts": dict.fromkeys(names, 1.0),
    }
    data = write_submission([row(sample=sample, **largest) for sample in range(2)], META)
    bounds = Bounds(2, 5)
    assert read_submission(data, bounds=bounds).rows[1].reward_parts == dict.fromkeys(names, 1.0)


def test_a_footer_that_lies_about_sizes_is_refused() -> None:
    footer, start = read_footer(VALID)
    size = footer[4][0][1][0][3][6]
    assert size < 8192, "two bytes as a varint"
    claimed = bytes([(2 * size & 127) | 128, 2 * size >> 7])
    at = VALID.index(claimed, start)
    lying = VALID[:at] + bytes([claimed[0] ^ 4, claimed[1]]) + VALID[at + 2 :]
    with pytest.raises(FormatError, match="than the footer says"):
        read_submission(lying)


def read_or_refuse(data: bytes) -> Submission | None:
    try:
        return read_submission(data)
    except FormatError:
        return None


@given(st.binary(max_size=400))
@example(b"PAR1PAR1")
@example(b"PAR1" + b"\xff" * 20 + b"\x14\0\0\0PAR1")
def test_random_bytes_are_refused(data: bytes) -> None:
    assert read_or_refuse(data) is None


def test_every_truncation_is_refused() -> None:
    assert all(read_or_refuse(VALID[:size]) is None for size in range(len(VALID)))
    assert read_or_refuse(VALID + b"\0") is None


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_or_obey_the_format(data: st.DataObject) -> None:
    """Arrow itself aborts the process on some of these; the reader must not let it see them."""
    damaged = bytearray(VALID)
    footer = len(VALID) - read_footer(VALID)[1]
    for _ in range(data.draw(st.integers(1, 3))):
        in_footer = data.draw(st.booleans())
        low = len(VALID) - footer if in_footer else 0
        damaged[data.draw(st.integers(low, len(VALID) - 1))] = data.draw(st.integers(0, 255))
    found = read_or_refuse(bytes(damaged))
    if found is not None:
        assert read_submission(write_submission(found.rows, found.meta)).rows == found.rows


@pytest.mark.slow
def test_every_single_bit_flip_is_refused_or_obeys_the_format() -> None:
    for at in range(len(VALID)):
        for bit in range(8):
            damaged = bytearray(VALID)
            damaged[at] ^= 1 << bit
            read_or_refuse(bytes(damaged))
