"""Follows a run while it runs: reads what is new in metrics.jsonl, keeps what progress shows.

The supervisor asks once in a while; nothing is read twice, and a half-written last line waits for
its end. Invariant: reading changes nothing, so any number may follow one run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_core.store.layout import METRICS
from prime_core.store.metrics import parse_line

WINDOW = 16  # records that rates and means are taken over


@dataclass
class Following:
    """The newest figures of a run.

    Attributes:
        step: rollout steps trained so far.
        waits: process name to (what it waits for, since when), for those that wait now.
    """

    run_dir: Path
    step: int = 0
    waits: dict[str, tuple[str, float]] = field(default_factory=dict)
    latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _offset: int = 0
    _tail: bytes = b""
    _trained: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _generated: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def read(self) -> list[Mapping[str, Any]]:
        """Take in what was appended since; returns the new trainer step records."""
        path = self.run_dir / METRICS
        if not path.exists():
            return []
        with path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        self._offset += len(data)
        lines = (self._tail + data).split(b"\n")
        self._tail = lines.pop()
        records = [record for line in lines if (record := parse_line(line, str(path)))]
        return [record for record in map(self._take, records) if record]

    def _take(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        process = str(record.get("process"))
        if record.get("waiting_for"):  # an empty one says that the wait is over
            since = float(record["time"]) - float(record.get("waiting_s", 0.0))
            self.waits[process] = (str(record["waiting_for"]), since)
            return None
        self.waits.pop(process, None)  # whoever reports work waits no more
        self.latest[process] = record
        if process == "trainer" and "loss/mean" in record:
            self.step = max(self.step, int(record["step"]) + 1)
            self._trained.append(record)
            return record
        if process.startswith("worker") and "completion_tokens" in record:
            self._generated.append(record)
        return None

    def mean(self, key: str) -> float | None:
        """Mean of a trainer figure over the last steps."""
        values = [float(r[key]) for r in self._trained if isinstance(r.get(key), int | float)]
        return sum(values) / len(values) if values else None

    def idle_share(self) -> float | None:
        """Share of the last steps' time that the trainer waited."""
        idle = sum(float(r.get("time/idle_s", 0.0)) for r in self._trained)
        busy = sum(float(r.get("time/busy_s", 0.0)) for r in self._trained)
        return idle / (idle + busy) if idle + busy > 0 else None

    def tokens_per_second(self) -> float | None:
        """Generated tokens per second of wall time over the last submissions of all workers."""
        if len(self._generated) < 2:
            return None
        span = float(self._generated[-1]["time"]) - float(self._generated[0]["time"])
        tokens = sum(int(r["completion_tokens"]) for r in list(self._generated)[1:])
        return tokens / span if span > 0 else None

    def waiting(self, *, longer_than_s: float = 0.0) -> list[str]:
        """Who waits for whom and for how long, one sentence each."""
        now = time.time()
        return [
            f"{process} waits for {what} ({now - since:.0f} s)"
            for process, (what, since) in sorted(self.waits.items())
            if now - since >= longer_than_s
        ]
