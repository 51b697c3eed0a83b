"""Metrics of a run: one JSON line a record in `metrics.jsonl`, appended by all its processes.

Trainer, workers, intake and supervisor write; report, dashboard and plots read. A record is one
append, so that lines of different processes never mix.
"""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from prime_core.api.errors import FormatError, StoreError
from prime_core.store.layout import METRICS

logger = logging.getLogger("prime_core.store")

Record: TypeAlias = dict[str, Any]
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class LineFile:
    """An append-only file of JSON lines that several processes may share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._failed(error) from error

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record in a single write; StoreError if it can't be written."""
        line = json.dumps(plain(record), separators=(",", ":"), allow_nan=False) + "\n"
        data = line.encode()
        try:
            written = os.write(self._handle, data)
        except OSError as error:
            raise self._failed(error) from error
        if written != len(data):
            raise StoreError(
                "only part of a line was written", where=str(self._path), fix="free disk space"
            )

    def close(self) -> None:
        """Close the file; further appends are a mistake."""
        os.close(self._handle)

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"can't be written: {error.strerror}",
            where=str(self._path),
            fix="free disk space and give this user write permission on the run directory",
        )


class MetricsLog:
    """One process's hand on the run's `metrics.jsonl`."""

    def __init__(self, run_dir: Path, process: str) -> None:
        self._file = LineFile(run_dir / METRICS)
        self._process = process

    def log(self, step: int | None, **values: Any) -> None:
        """Append {time, process, step, **values}; time in seconds since the epoch.

        Values are numbers, strings, booleans, None, or lists and mappings of them; numpy scalars
        and 0-d tensors are taken as numbers. Non-finite floats are kept as strings in the file.
        """
        head = {"time": time.time(), "process": self._process, "step": step}
        assert not head.keys() & values.keys(), sorted(values)
        self._file.append({**head, **values})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(run_dir: Path) -> list[Record]:
    """All records in file order; [] if there are none yet.

    Raises:
        FormatError: a line is JSON, but no record. A last line without its newline is still being
            written and is left out; so is one that was cut short.
    """
    return read_lines(run_dir / METRICS)


def read_lines(path: Path) -> list[Record]:
    """The records of a `LineFile`; errors as `read_metrics`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"can't be read: {error.strerror}", where=str(path)) from error
    records: list[Record] = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        record = parse_line(line, f"{path}:{number}")
        if record is None:
            continue
        records.append({key: _number(value) for key, value in record.items()})
    return records


def parse_line(line: bytes, where: str) -> Record | None:
    """The record of one line, or None where the line isn't JSON: said in the log, as it's lost.

    A disk that was full cuts a record short, and the next one is appended to the piece: a run that
    goes on afterwards must not stumble over it.

    Raises:
        FormatError: JSON, but no object, so that nobody of the run wrote it.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        logger.warning("%s is no record and is left out; a full disk cuts lines short", where)
        return None
    if not isinstance(record, dict):
        raise FormatError("not a JSON object", where=where, fix="remove the line")
    return record


def plain(value: Any) -> Any:
    """The JSON form of a value; non-finite floats become strings, as JSON has none."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):  # numpy scalar or 0-d tensor
        return plain(value.item())
    raise TypeError(f"a metric can't be {type(value).__name__}")


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return _NON_FINITE.get(value, value)
    if isinstance(value, dict):
        return {key: _number(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_number(item) for item in value]
    return value
