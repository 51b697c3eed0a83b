"""Spans of a run's processes, one JSON line each, and the Chrome trace file that shows them all.

Every process writes `trace/<process>.jsonl`; `merge_trace` makes `trace.json`, which Perfetto and
chrome://tracing open. Times are wall-clock microseconds, so that processes line up.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prime_core.api.errors import StoreError
from prime_core.store.layout import TRACE
from prime_core.store.metrics import LineFile, Record, plain, read_lines

MERGED = "trace.json"
_PROCESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


class Trace:
    """One process's spans.

    Span names: generate, score, wait, load_policy, train, logprobs, optimizer, snapshot,
    publish, fetch, intake.
    """

    def __init__(self, run_dir: Path, process: str) -> None:
        assert _PROCESS.fullmatch(process), process
        self._file = LineFile(run_dir / TRACE / f"{process}.jsonl")

    @contextmanager
    def span(self, name: str, *, lane: str = "main", **args: Any) -> Iterator[dict[str, Any]]:
        """Record how long the block takes, also when it raises.

        Args:
            name: what the process does meanwhile.
            lane: the row it is drawn in; spans of one lane must nest, so work that overlaps
                within a process (asyncio tasks) needs lanes of its own.
            args: shown beside the span; the dict that is yielded takes more.
        """
        details = dict(args)
        start, clock = time.time_ns(), time.perf_counter_ns()
        try:
            yield details
        except BaseException as error:
            details["error"] = type(error).__name__
            raise
        finally:
            duration = time.perf_counter_ns() - clock
            self._file.append(
                {
                    "name": name,
                    "lane": lane,
                    "ts": start / 1000,
                    "dur": duration / 1000,
                    "args": details,
                }
            )

    def past(self, name: str, start: float, seconds: float, **args: Any) -> None:
        """Record what is over already: its start in seconds since the epoch, and how long."""
        self._file.append(
            {"name": name, "lane": "main", "ts": start * 1e6, "dur": seconds * 1e6, "args": args}
        )

    def instant(self, name: str, *, lane: str = "main", **args: Any) -> None:
        """Record that something happened now."""
        self._file.append(
            {"name": name, "lane": lane, "ts": time.time_ns() / 1000, "args": dict(args)}
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_trace(run_dir: Path) -> dict[str, list[Record]]:
    """The spans of each process, in file order; a span has `dur`, an instant doesn't."""
    files = sorted((run_dir / TRACE).glob("*.jsonl"))
    return {path.stem: read_lines(path) for path in files}


def merge_trace(run_dir: Path) -> Path:
    """Write `trace/trace.json` (Chrome trace event format, JSON object form) and return its path.

    Processes become pids in name order, lanes become tids in order of appearance.
    """
    events: list[Record] = []
    for pid, (process, records) in enumerate(read_trace(run_dir).items(), start=1):
        events.append(_named("process_name", pid, 0, process))
        lanes: dict[str, int] = {}
        for record in records:
            lane = str(record["lane"])
            if lane not in lanes:
                lanes[lane] = len(lanes) + 1
                events.append(_named("thread_name", pid, lanes[lane], lane))
            events.append(_event(record, pid, lanes[lane]))
    target = run_dir / TRACE / MERGED
    temporary = target.with_name(f".{MERGED}-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(plain({"traceEvents": events, "displayTimeUnit": "ms"})))
        temporary.replace(target)
    except OSError as error:
        raise StoreError(f"can't be written: {error.strerror}", where=str(target)) from error
    return target


def _named(what: str, pid: int, tid: int, name: str) -> Record:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _event(record: Record, pid: int, tid: int) -> Record:
    event: Record = {"name": record["name"], "pid": pid, "tid": tid, "ts": record["ts"]}
    if "dur" in record:
        return {**event, "ph": "X", "dur": record["dur"], "args": record["args"]}
    return {**event, "ph": "i", "s": "t", "args": record["args"]}
