"""Bytes made to harm end a reading process and nothing else."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prime_core.api import FormatError, HostError
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import (
    Bounds,
    _encode_table,
    _file_metadata,
    _table,
    read_submission,
    write_submission,
)
from prime_core.testing.toy_submission import toy_submission
from prime_core.validation.reading import Reader

META = SubmissionMeta("toy-run", "ab" * 32, "engine")


@pytest.fixture(scope="module")
def reader():
    with Reader() as opened:
        yield opened


@pytest.fixture(scope="module")
def good() -> bytes:
    rows = [row for row in toy_submission()[0].rows if isinstance(row, RolloutRow)]
    return write_submission(rows, META)


def read(reader: Reader, data: bytes, **limits):
    return reader.read(data, **{"time_limit_s": 20.0, "memory_mb": 1024, **limits})


def test_a_good_file_is_read_as_the_trainer_reads_it(reader: Reader, good: bytes) -> None:
    found = read(reader, good)
    assert found.rows == toy_submission()[0].rows


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 9, b"\x00" * 1000, b"{}"])
def test_other_bytes_are_a_format_error(reader: Reader, data: bytes) -> None:
    with pytest.raises(FormatError):
        read(reader, data)


def test_mutated_files_end_in_an_error_or_a_submission(reader: Reader, good: bytes) -> None:
    rng = random.Random(5)
    for _ in range(60):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read(reader, bytes(data))
        except FormatError:
            continue


def test_a_foreign_table_is_refused(reader: Reader) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": [1, 2, 3]}), sink)
    with pytest.raises(FormatError):
        read(reader, sink.getvalue())


def test_a_process_that_dies_over_a_file_refuses_it_and_the_next_file_is_read(good: bytes) -> None:
    with Reader() as reader:
        read(reader, good)
        assert reader._process is not None
        first = reader._process.pid
        with pytest.raises(FormatError, match="ended the reading process"):
            read(reader, good, memory_mb=2**60)  # setting such a limit ends the process
        assert read(reader, good).rows
        assert reader._process.pid != first


def huge(tokens: int) -> bytes:
    """Two rows of so many equal prompt tokens, which compress to a few kilobytes."""
    rows = toy_submission()[0].rows[:2]
    table = _table([replace(row, group_id="3-node-0-0") for row in rows])
    kind = table.schema.field("prompt_tokens")
    offsets = pa.array([0, tokens, 2 * tokens], pa.int32())
    values = pa.array([0], pa.int32()).take(pa.array([0] * (2 * tokens)))
    lists = pa.ListArray.from_arrays(offsets, values, type=kind.type)
    place = table.schema.get_field_index("prompt_tokens")
    return _encode_table(table.set_column(place, kind, lists), _file_metadata(META))


def test_no_file_decodes_to_more_than_the_runs_largest_honest_one(good: bytes) -> None:
    data = huge(200_000)
    assert len(data) < 20_000
    bounds = Bounds(rows=8, tokens=64)
    with pytest.raises(FormatError, match="decodes to more"):
        read_submission(data, bounds=bounds)
    with Reader(bounds) as reader:
        assert read(reader, good).rows
        with pytest.raises(FormatError, match="decodes to more"):
            read(reader, data)
    with pytest.raises(FormatError, match="more than 7"):
        read_submission(good, bounds=Bounds(rows=7, tokens=64))


def test_the_largest_honest_file_fits_its_bounds() -> None:
    tokens, prompt, groups = 96, 32, 2
    rows = [
        replace(
            row,
            max_tokens=tokens,
            prompt_tokens=list(range(prompt)),
            completion_tokens=list(range(tokens)),
            completion_mask=[index % 2 == 0 for index in range(tokens)],
            completion_logprobs=[-float(index % 2 == 0) for index in range(tokens)],
            turn_ends=list(range(1, tokens, 2)),
            proofs=bytes(258 * (tokens // 32)),
            task_id="t" * 4096,
            reward_parts={f"{part:032}": 1.0 for part in range(64)},
        )
        for row in toy_submission(groups=groups)[0].rows
        if isinstance(row, RolloutRow)
    ]
    rows = [replace(row, task_id=rows[0].task_id) for row in rows]
    data = write_submission(rows, META)
    assert read_submission(data, bounds=Bounds(rows=len(rows), tokens=prompt + tokens)).rows


def test_a_process_that_does_not_start_is_nobodys_fault(
    good: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.validation.reading.START_LIMIT_S", 0.0)
    with Reader() as reader, pytest.raises(HostError, match="doesn't start"):
        read(reader, good)


def test_memory_has_a_limit(good: bytes) -> None:
    with Reader() as reader, pytest.raises(FormatError):
        read(reader, good, memory_mb=0)
