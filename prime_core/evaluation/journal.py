"""Finished units of work on disk, so that whoever is killed goes on where it was.

Written by `running`, read by the summaries. Invariant: a line is whole or ignored, a unit counts
once, and one process writes at a time; so a kill at any instant loses at most the units in work.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prime_core.api.errors import RunError, StoreError

SCHEMA = "prime-core/journal/1"


class Journal:
    """One JSONL file: a line of settings, then one line for each finished unit.

    Made by `open_journal`.
    """

    def __init__(self, path: Path, handle: int, size: int) -> None:
        self._path, self._handle, self._size = path, handle, size
        self._places: dict[int, tuple[int, int]] = {}

    def __contains__(self, unit: int) -> bool:
        return unit in self._places

    def __len__(self) -> int:
        return len(self._places)

    def add(self, unit: int, results: list[Any]) -> bool:
        """Note a finished unit; False where it was known already, and is as it was.

        Raises:
            StoreError: it can't be written.
        """
        if unit in self._places:
            return False
        self._places[unit] = self._write({"unit": unit, "results": results})
        return True

    def read(self, unit: int) -> list[Any]:
        """The results of a unit."""
        place, size = self._places[unit]
        results: list[Any] = json.loads(os.pread(self._handle, size, place))["results"]
        return results

    def results(self) -> Iterator[Any]:
        """Every result, in order of the units, whatever the order they were finished in."""
        for unit in sorted(self._places):
            yield from self.read(unit)

    def close(self) -> None:
        """Let others write."""
        os.close(self._handle)

    def remove(self) -> None:
        """Delete the file; nothing is to be continued."""
        self._path.unlink(missing_ok=True)
        self.close()

    def _write(self, record: Mapping[str, Any]) -> tuple[int, int]:
        data = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            written = os.pwrite(self._handle, data, self._size)
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        if written != len(data):
            os.ftruncate(self._handle, self._size)
            raise self._failed("only part of a line was written")
        place = self._size
        self._size += len(data)
        return place, len(data)

    def _failed(self, why: str) -> StoreError:
        return StoreError(f"can't be written: {why}", where=str(self._path), fix="free disk space")

    def _load(self, head: Mapping[str, Any]) -> dict[str, Any] | None:
        """Read the file; returns the settings it was written under, None where it has none."""
        found: dict[str, Any] | None = None
        whole = 0
        with os.fdopen(os.dup(self._handle), "rb") as file:
            file.seek(0)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # cut short by a kill
                record = _parsed(line)
                if whole == 0:
                    found = record if record and record.get("schema") == SCHEMA else None
                    if found != head:
                        return found or {}
                elif record is not None and isinstance(record.get("unit"), int):
                    self._places.setdefault(record["unit"], (whole, len(line)))
                whole += len(line)
        os.ftruncate(self._handle, whole)
        self._size = whole
        return found


def open_journal(path: Path, settings: Mapping[str, Any], *, replace: bool = False) -> Journal:
    """The journal of work with these settings: a new one, or what an earlier process left.

    Args:
        settings: plain JSON; everything that the results depend on.
        replace: start anew where the file is of other settings.

    Raises:
        RunError: it is of other settings, or another process writes it.
        StoreError: it can't be written.
    """
    head = json.loads(json.dumps({"schema": SCHEMA, **settings}))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"can't be written: {error.strerror}", where=str(path), fix="choose another place"
        ) from error
    try:
        _lock(handle, path)
        journal = Journal(path, handle, 0)
        found = journal._load(head)
        if found is not None and found != head:
            if not replace:
                raise _other_settings(path, found, head)
            os.ftruncate(handle, 0)
            found, journal = None, Journal(path, handle, 0)
        if found is None:
            os.ftruncate(handle, 0)
            journal._size = 0
            journal._write(head)
    except BaseException:
        os.close(handle)
        raise
    return journal


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(
            "another process is at this work",
            where=str(path),
            fix="wait for it, or choose another --out",
        ) from error


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _other_settings(path: Path, found: Mapping[str, Any], head: Mapping[str, Any]) -> RunError:
    differing = [
        f"{name} was {found.get(name)!r}, is {head.get(name)!r}"
        for name in sorted(found.keys() | head.keys())
        if found.get(name) != head.get(name)
    ]
    what = "; ".join(one if len(one) <= 200 else f"{one[:200]}..." for one in differing[:5])
    return RunError(
        f"it holds results of other settings: {what}" if found else "it is no journal",
        where=str(path),
        fix="choose another --out, or remove the file to start anew",
    )
