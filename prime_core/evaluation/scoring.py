"""Scores a file of completions with an environment's verifier; `prime-core score --completions`.

Everything lies in one directory: the journal, which makes it resumable, and the report. Invariant:
the file's rows, in their order, are scored once each, whoever was killed in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import DatasetError
from prime_core.evaluation.completions import AnyRow, BadRow, CompletionFile, Row
from prime_core.evaluation.journal import Journal, open_journal
from prime_core.evaluation.judged import Judged
from prime_core.evaluation.opening import open_hosts
from prime_core.evaluation.orders import Order, dump, identity
from prime_core.evaluation.placing import is_ray, make_crew, worker_count
from prime_core.evaluation.report_files import Report, write_report
from prime_core.evaluation.running import Progress, run_order
from prime_core.evaluation.summary import Summary, summarise
from prime_core.evaluation.units import Unit, cut
from prime_core.hosting import wire

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, HostingSection
    from prime_core.hosting.pool import HostPool

JOURNAL = "journal.jsonl"
UNIT_ROWS = 16  # judged together; what a kill may cost is `DEPTH` times this a worker
DEPTH = 8  # units in work for each worker, so that hosts never wait
LOOKUPS = 1024  # task ids looked up together
TASKS = 64  # tasks fetched together
BAD_SHOWN = 10


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How a file is scored.

    Attributes:
        out: directory of journal and report.
        on: local, ray or ray://HOST:PORT.
        workers: host processes here, or Ray workers with one host each; None: one a CPU.
        ks: of pass@k; empty for the usual ones.
        pass_mark: the lowest score that passes; None for the highest.
        skip_bad: leave rows out that can't be used, and say how many; else they are an error.
    """

    out: Path
    on: str = "local"
    workers: int | None = None
    block: Sequence[str] = ()
    ks: Sequence[int] = ()
    pass_mark: float | None = None
    skip_bad: bool = False


@dataclass(slots=True)
class _Places:
    """Where the rows' tasks are.

    Attributes:
        indices: by task id; None where there is no such task.
        ids: by index, of the tasks that a row names by its index.
        bad: rows that can't be used, by reason.
    """

    task_count: int
    indices: dict[str, int | None] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    bad: list[BadRow] = field(default_factory=list)
    good: int = 0

    def index(self, row: Row) -> int | str:
        """The task's index, or why there is none; an id wins over an index."""
        if row.task is not None:
            found = self.indices[row.task]
            return f"there is no task {row.task!r}" if found is None else found
        assert row.index is not None
        if not 0 <= row.index < self.task_count:
            return f"there is no task with index {row.index}, of {self.task_count}"
        return row.index


def score_file(
    file: CompletionFile,
    environment: EnvironmentChoice,
    hosting: HostingSection,
    settings: ScoreSettings,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Score every row and write the report; blocks. Called again, it goes on where it stopped.

    Args:
        hosting: limits of the hosts; how many there are is the settings' business.

    Raises:
        DatasetError: the file can't be read, or has rows that can't be used.
        RunError: the directory holds results of other settings, or is in use.
        PrimeError: the environment can't be opened, or no host can be started any more.
    """
    return asyncio.run(_score_file(file, environment, hosting, settings, progress))


async def _score_file(
    file: CompletionFile,
    environment: EnvironmentChoice,
    hosting: HostingSection,
    settings: ScoreSettings,
    progress: Progress,
) -> Report:
    workers = worker_count(settings.on, settings.workers)
    ray = is_ray(settings.on)
    hosting = hosting.model_copy(update={"hosts": 1 if ray else workers})
    async with AsyncExitStack() as stack:
        pool = await open_hosts(environment, hosting, settings.block, stack, run_dir=None)
        places = await _find_tasks(file, pool)
        if places.bad and not settings.skip_bad:
            raise _bad_rows(file, places.bad)
        order = Order(
            kind="score",
            environment=dump(environment),
            hosting=dump(hosting),
            block=list(settings.block),
            identity=identity(pool.description),
            depth=DEPTH if ray else DEPTH * workers,
        )
        head = _head(file, environment.label, order)
        journal = open_journal(settings.out / JOURNAL, head)
        stack.callback(journal.close)
        crew = make_crew(settings.on, workers, pool)
        await run_order(order, _units(file, places), places.good, journal, crew, progress)
        score_range = pool.description.info.score_range
        report = _report(file, head, settings, journal, places, score_range)
        write_report(settings.out, report, _results(journal))
    return report


def _head(file: CompletionFile, label: str, order: Order) -> dict[str, Any]:
    return {
        "kind": "score",
        "environment": label,
        **order.identity,
        "completions": file.digest(),
        "columns": dict(file.columns),
        "unit": UNIT_ROWS,
    }


async def _find_tasks(file: CompletionFile, pool: HostPool) -> _Places:
    """Read the whole file once, and look up every task it names."""
    places = _Places(pool.description.task_count)

    async def look_up(rows: Sequence[AnyRow]) -> None:
        named = {row.task for row in rows if isinstance(row, Row) and row.task is not None}
        asked = sorted(named - places.indices.keys())
        found = await asyncio.gather(*(pool.find(task) for task in asked))
        places.indices.update(zip(asked, found, strict=True))
        by_index = {row.index for row in rows if isinstance(row, Row) and row.task is None}
        unknown = [index for index in by_index - places.ids.keys() if index is not None]
        inside = sorted(index for index in unknown if 0 <= index < places.task_count)
        # Few at a time: a task may carry megabytes of tests, of which the id alone is kept.
        for _, some in cut(inside, TASKS):
            places.ids.update((i, t.id) for i, t in zip(some, await pool.tasks(some), strict=True))
        for row in rows:
            place = row.reason if isinstance(row, BadRow) else places.index(row)
            if isinstance(place, str):
                places.bad.append(BadRow(row.number, place))
            else:
                places.good += 1

    for _, rows in cut(file.rows(), LOOKUPS):
        await look_up(rows)
    return places


def _units(file: CompletionFile, places: _Places) -> Iterator[Unit]:
    seen: Counter[int] = Counter()

    def items() -> Iterator[list[Any]]:
        for row in file.rows():
            index = None if isinstance(row, BadRow) else places.index(row)
            if isinstance(row, Row) and isinstance(index, int):
                said = wire.completion_json(row.completion)
                task = places.ids[index] if row.task is None else row.task
                yield [row.number, row.id, index, task, seen[index], said]
                seen[index] += 1

    for number, cut_items in cut(items(), UNIT_ROWS):
        yield Unit(number, cut_items)


def _results(journal: Journal) -> Iterator[Judged]:
    return (Judged.from_json(found) for found in journal.results())


def _report(
    file: CompletionFile,
    head: Mapping[str, Any],
    settings: ScoreSettings,
    journal: Journal,
    places: _Places,
    score_range: tuple[float, float],
) -> Report:
    summary = summarise(
        _results(journal), score_range, ks=settings.ks, pass_mark=settings.pass_mark
    )
    notes = []
    if places.bad:
        shown = "; ".join(f"row {bad.number}: {bad.reason}" for bad in places.bad[:3])
        notes.append(f"{len(places.bad)} rows couldn't be used and are left out: {shown}")
    label = head["environment"]
    return Report(
        kind="score",
        title=f"Scores of {file.path.name} by {label}",
        lead=f"{summary.completions:,} completions of {len(summary.tasks):,} tasks, judged by "
        f"{head['verifier']}",
        settings=head,
        score_range=score_range,
        summary=_with_texts(file, summary),
        notes=notes,
    )


def _with_texts(file: CompletionFile, summary: Summary) -> Summary:
    """The summary with its examples' texts, which only the file has."""
    wanted = {one.row for shown in summary.examples.values() for one in shown}
    texts: dict[int, Row] = {}
    for row in file.rows() if wanted else ():
        if row.number in wanted and isinstance(row, Row):
            texts[row.number] = row
            if len(texts) == len(wanted):
                break

    def filled(one: Judged) -> Judged:
        said = texts[one.row].completion
        several = len(said.messages) > 1
        return replace(one, text=said.text, messages=said.messages if several else ())

    examples = {kind: [filled(one) for one in shown] for kind, shown in summary.examples.items()}
    return replace(summary, examples=examples)


def _bad_rows(file: CompletionFile, bad: Sequence[BadRow]) -> DatasetError:
    lines = "".join(f"\n  row {one.number}: {one.reason}" for one in bad[:BAD_SHOWN])
    more = f"\n  and {len(bad) - BAD_SHOWN} more" if len(bad) > BAD_SHOWN else ""
    return DatasetError(
        f"{len(bad)} rows can't be used:{lines}{more}",
        where=str(file.path),
        fix="correct them, name the columns with --column, or leave them out with --skip-bad",
    )
