"""The files of a report: report.json, report.html, tasks.parquet, samples.parquet.

Written by `scoring` and `measuring` when the work is done, each in one move. Invariant: they are
the same bytes for the same results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.api.errors import StoreError
from prime_core.evaluation.judged import Judged
from prime_core.evaluation.report_page import as_html
from prime_core.evaluation.summary import Summary
from prime_core.hosting import wire

SCHEMA = "prime-core/evaluation/1"
BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and what is to be said of it.

    Attributes:
        kind: score or eval.
        settings: what the results depend on, plain JSON.
        score_range: of the environment.
        notes: what a reader must know.
    """

    kind: str
    title: str
    lead: str
    settings: Mapping[str, Any]
    score_range: tuple[float, float]
    summary: Summary
    notes: Sequence[str] = ()

    def to_json(self, *, tasks: bool) -> dict[str, Any]:
        """Plain JSON, with a line for each task where asked."""
        found = {
            "schema": SCHEMA,
            "kind": self.kind,
            "settings": dict(self.settings),
            "score_range": list(self.score_range),
            "notes": list(self.notes),
            **self.summary.numbers(),
        }
        if tasks:
            found["per_task"] = [line.to_json() for line in self.summary.tasks]
        return found


def write_report(out: Path, report: Report, results: Iterable[Judged]) -> None:
    """Write or replace the four files.

    Raises:
        StoreError: they can't be written.
    """
    page = as_html(
        report.title,
        report.lead,
        report.settings,
        report.summary,
        report.score_range,
        report.notes,
    )
    text = json.dumps(report.to_json(tasks=True), indent=1) + "\n"
    try:
        _replace(out / "samples.parquet", lambda path: _write_samples(path, results))
        _replace(out / "tasks.parquet", lambda path: _write_tasks(path, report.summary))
        _replace(out / "report.json", lambda path: path.write_text(text, encoding="ascii"))
        _replace(out / "report.html", lambda path: path.write_bytes(page))
    except OSError as error:
        raise StoreError(
            f"the report can't be written: {error.strerror or error}",
            where=str(out),
            fix="free disk space; then run this again, nothing is judged twice",
        ) from error


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_tasks(path: Path, summary: Summary) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("index", pa.int64()),
            ("task", pa.string()),
            ("completions", pa.int32()),
            ("scored", pa.int32()),
            ("passes", pa.int32()),
            ("tokens", pa.int64()),
            ("truncated", pa.int32()),
            ("mean", pa.float64()),
            ("pass@1", pa.float64()),
        ]
    )
    rows = [_plain(line.to_json()) for line in summary.tasks]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _write_samples(path: Path, results: Iterable[Judged]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("row", pa.int64()),
            ("id", pa.string()),
            ("index", pa.int64()),
            ("task", pa.string()),
            ("sample", pa.int32()),
            ("value", pa.float64()),
            ("status", pa.string()),
            ("parts", pa.string()),
            ("evidence", pa.string()),
            ("completion", pa.string()),
            ("messages", pa.string()),
            ("finish_reason", pa.string()),
            ("token_count", pa.int64()),
            ("prompt_tokens", pa.int64()),
            ("cost", pa.float64()),
        ]
    )
    with pq.ParquetWriter(path, schema) as writer:
        batch: list[dict[str, Any]] = []
        for one in results:
            batch.append(_sample(one))
            if len(batch) == BATCH_ROWS:
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                batch.clear()
        if batch:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def _sample(one: Judged) -> dict[str, Any]:
    """A row; `prime-core score` reads it where it holds a completion."""
    from_file = one.row >= 0
    messages = [wire.message_json(message) for message in one.messages]
    return _plain(
        {
            "row": one.row if from_file else None,
            "id": one.id or None,
            "index": one.index,
            "task": one.task,
            "sample": one.sample,
            "value": one.score.value,
            "status": one.score.status,
            "parts": json.dumps(dict(one.score.parts)),
            "evidence": json.dumps(dict(one.score.evidence)),
            "completion": None if from_file else one.text,
            "messages": json.dumps(messages) if messages else None,
            "finish_reason": one.finish_reason,
            "token_count": one.tokens,
            "prompt_tokens": one.prompt_tokens,
            "cost": one.cost,
        }
    )


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Texts that Parquet can hold: a lone surrogate isn't UTF-8."""
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }
