"""Tasks from files: fetched, checked, mapped, split, and named by their digest.

Called by environments; the same source gives the same tasks in the same order, or an error that
names every bad row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

from prime_core.api.datasets.digest import tasks_digest
from prime_core.api.datasets.fetch import LocalFile, local_file
from prime_core.api.datasets.mapping import RowMapping
from prime_core.api.datasets.rows import read_rows
from prime_core.api.datasets.source import DatasetSource
from prime_core.api.datasets.split import in_split
from prime_core.api.errors import DatasetError
from prime_core.api.specs import Context
from prime_core.api.types import Task

SHOWN = 20  # bad rows that an error spells out


class TaskTable(Sequence[Task]):
    """Tasks in the order of their files.

    Attributes:
        files: the files that were read, with their digests.
        bad_rows: one line for each row that was left out (policy skip).
    """

    def __init__(
        self, tasks: Sequence[Task], files: Sequence[LocalFile] = (), bad_rows: Sequence[str] = ()
    ) -> None:
        self._tasks = tuple(tasks)
        self.files = tuple(files)
        self.bad_rows = tuple(bad_rows)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over the tasks' canonical JSON, in order."""
        return tasks_digest(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Task, ...]: ...
    def __getitem__(self, index: int | slice) -> Task | tuple[Task, ...]:
        return self._tasks[index]


def load_tasks(source: DatasetSource, context: Context) -> TaskTable:
    """Read the tasks of a source.

    Task types and the split are applied before the limit; reading stops when the limit is
    reached, so that bad rows behind it are not seen.

    Raises:
        DatasetError: a file is missing or of another digest, rows break the schema (all are
            counted, the first 20 shown), or no task is left.
    """
    files = [
        local_file(url, source.revision, digest, context)
        for url, digest in zip(source.urls, source.digests, strict=True)
    ]
    tasks: list[Task] = []
    bad_rows: list[str] = []
    for outcome in _outcomes(source, files):
        if isinstance(outcome, str):
            bad_rows.append(outcome)
        else:
            tasks.append(outcome)
            if len(tasks) == source.limit:
                break
    if bad_rows and source.bad_rows == "refuse":
        raise _bad_rows_error(source, bad_rows)
    if not tasks:
        raise DatasetError(
            f"no task is left of {', '.join(source.urls)} ({len(bad_rows)} rows were bad)",
            where=bad_rows[0] if bad_rows else None,
            fix="check task_types, split and columns",
        )
    return TaskTable(tasks, files, bad_rows)


def _outcomes(source: DatasetSource, files: Sequence[LocalFile]) -> Iterator[Task | str]:
    """Every wanted task, or the line that says what is wrong with a row."""
    mapping = RowMapping(source)
    columns = mapping.roots()
    places: dict[str, str] = {}
    for file in files:
        for place, row in read_rows(file.path, file.suffix, columns, file.url):
            where = place if len(files) == 1 else f"{file.url}, {place}"
            try:
                if isinstance(row, ValueError):
                    raise row
                task = mapping.task(row)
                if task.id in places:
                    raise ValueError(f"the id {task.id!r} stands at {places[task.id]} already")
            except ValueError as error:
                yield f"{where}: {error}"
                continue
            places[task.id] = where
            if _wanted(source, task):
                yield task


def _wanted(source: DatasetSource, task: Task) -> bool:
    if source.task_types and task.task_type not in source.task_types:
        return False
    return in_split(task.id, source.split.name, source.split.test_share)


def _bad_rows_error(source: DatasetSource, bad_rows: Sequence[str]) -> DatasetError:
    more = len(bad_rows) - SHOWN
    lines = [f"\n  {line}" for line in bad_rows[:SHOWN]]
    if more > 0:
        lines.append(f"\n  and {more} more")
    count = f"{len(bad_rows)} row{'s' if len(bad_rows) != 1 else ''}"
    return DatasetError(
        f"{count} can't be used:{''.join(lines)}",
        where=", ".join(source.urls),
        fix='repair them, map other columns, or set bad_rows = "skip"',
    )
