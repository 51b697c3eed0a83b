"""Rows of a file on local disk, with the place where each stands.

Called by `load_tasks`; a line that can't be parsed is yielded as an error, so that all of them
are reported together, and a file that can't be read at all raises DatasetError.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, BinaryIO, cast

from prime_core.api.datasets.source import SUFFIXES
from prime_core.api.errors import DatasetError

MAX_LINE = 64 * 2**20  # bytes of one JSONL row

# (place, row or the reason why there is none)
Row = tuple[str, dict[str, Any] | ValueError]


def suffix_of(name: str) -> str:
    """The format's suffix of a file name or URL.

    Raises:
        DatasetError: none of the formats.
    """
    path = name.split("?", 1)[0].lower()
    found = [suffix for suffix in SUFFIXES if path.endswith(suffix)]
    if not found:
        raise DatasetError(
            "this isn't a format of tasks",
            where=name,
            fix=f"use a file that ends in {', '.join(SUFFIXES)}",
        )
    return max(found, key=len)


def read_rows(path: Path, suffix: str, columns: Set[str], name: str) -> Iterator[Row]:
    """The rows of a file, in order.

    Args:
        path: the file on local disk.
        suffix: its format.
        columns: the columns that may be read; Parquet reads no other.
        name: what the file is called in errors.
    """
    try:
        if suffix == ".parquet":
            yield from _parquet(path, columns)
        elif suffix == ".json":
            yield from _json_array(path, name)
        elif suffix == ".jsonl.gz":
            with gzip.open(path) as stream:
                yield from _json_lines(cast("BinaryIO", stream))
        else:
            with path.open("rb") as stream:
                yield from _json_lines(stream)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(
            f"the file can't be read: {error}", where=name, fix="check that it is whole"
        ) from error


def _json_lines(stream: BinaryIO) -> Iterator[Row]:
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        place = f"line {number}"
        if len(line) > MAX_LINE:
            raise OSError(f"{place} is longer than {MAX_LINE} bytes")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield place, _parse(line)


def _parse(line: bytes) -> dict[str, Any] | ValueError:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return ValueError(f"not UTF-8: {error.reason} at byte {error.start}")
    except (ValueError, RecursionError) as error:
        return ValueError(f"not JSON: {error}")
    return _as_row(row)


def _as_row(row: Any) -> dict[str, Any] | ValueError:
    if not isinstance(row, dict):
        return ValueError(f"a row is a JSON object, not {type(row).__name__}")
    return row


def _json_array(path: Path, name: str) -> Iterator[Row]:
    try:
        rows = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"not JSON: {error}", where=name, fix="repair the file") from error
    if not isinstance(rows, list):
        raise DatasetError(
            f"a .json file holds a list of rows, not {type(rows).__name__}",
            where=name,
            fix="write a list, or one row a line as .jsonl",
        )
    for number, row in enumerate(rows, start=1):
        yield f"row {number}", _as_row(row)


def _parquet(path: Path, columns: Set[str]) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if name in columns]
            number = 0
            for batch in file.iter_batches(batch_size=256, columns=names):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
    except pyarrow.ArrowException as error:
        raise OSError(str(error)) from error
