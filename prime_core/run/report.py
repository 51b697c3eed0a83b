"""`prime-core report`: timings and FLOP ratio of a run, as section 4.2 of INTELLECT-2 has them.

Called by the command, the supervisor's summary and the benchmarks. Everything is computed from
metrics.jsonl, the trace and the store; a step that was trained again after a crash counts once.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.store.layout import RUN
from prime_core.store.metrics import read_metrics
from prime_core.store.trace import read_trace

MICROSECONDS = 1e-6

MEANINGS = {
    "broadcast": "from the start of publishing a version to a worker having loaded it",
    "batch_ready": "from then to the closing of the step that the version's rollouts serve",
    "validation": "judging one submission",
    "step": "log-probabilities, optimizer steps and publishing of one rollout step",
    "wait": "what the trainer waited for a step's batch",
}


@dataclass(frozen=True)
class Timing:
    """Seconds of one kind of event: how many there were, and their spread."""

    count: int
    median: float
    mean: float
    longest: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """The spread of a non-empty list."""
        return cls(
            len(seconds), statistics.median(seconds), statistics.fmean(seconds), max(seconds)
        )


@dataclass(frozen=True)
class Report:
    """What a run took.

    Attributes:
        steps: rollout steps trained.
        timings: by the names of `MEANINGS`; a name without events is absent.
        train_flops, inference_flops: over the whole run.
        idle_share: by process, the share of its working life that it waited.
        generated_per_trained: rollouts generated for each rollout trained; None before any.
        lag: rollouts trained at each lag.
        tokens_per_s: completion tokens per second of wall time between the first and the last
            submission.
        outcomes: by outcome, with in_flight and carried where there are any.
    """

    steps: int
    timings: dict[str, Timing]
    train_flops: float
    inference_flops: float
    idle_share: dict[str, float]
    generated_per_trained: float | None
    lag: dict[int, int]
    tokens_per_s: float | None
    outcomes: dict[str, int]

    @property
    def flop_ratio(self) -> float | None:
        """Inference FLOPs per training FLOP; INTELLECT-2 reports about 4."""
        return self.inference_flops / self.train_flops if self.train_flops else None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "steps": self.steps,
            "outcomes": self.outcomes,
            "idle_share": {name: round(share, 4) for name, share in self.idle_share.items()},
            "timings_s": {
                name: {key: round(value, 4) for key, value in vars(timing).items()}
                for name, timing in self.timings.items()
            },
            "train_flops": self.train_flops,
            "inference_flops": self.inference_flops,
            "flop_ratio": self.flop_ratio,
            "generated_per_trained": self.generated_per_trained,
            "lag": {str(lag): count for lag, count in self.lag.items()},
            "tokens_per_s": self.tokens_per_s,
        }


@dataclass(frozen=True)
class _Span:
    """One span of the trace, in seconds since the epoch."""

    process: str
    name: str
    start: float
    end: float
    args: Mapping[str, Any]


def report(run_dir: Path) -> Report:
    """Read a run, finished or not.

    Raises:
        FormatError: metrics or trace are damaged.
    """
    from prime_core.config.load import load_run
    from prime_core.store.objects import open_store
    from prime_core.store.outcomes import balance

    records = read_metrics(run_dir)
    trained = last_by_step(r for r in records if r["process"] == "trainer" and "loss/mean" in r)
    made = last_by_submission(records)
    spans = _spans(run_dir)
    lag: dict[int, int] = {}
    for record in trained.values():
        for key, count in record.items():
            if key.startswith("lag/") and key[4:].isdigit():
                lag[int(key[4:])] = lag.get(int(key[4:]), 0) + int(count)
    rollouts = sum(int(record["rollouts"]) for record in made.values())
    used = sum(int(record["batch/rollouts"]) for record in trained.values())
    found = balance(open_store(load_run(run_dir / RUN)))
    unsettled = {"carried": found.total.carried, "in_flight": found.total.in_flight}
    outcomes = {
        **found.total.outcomes,
        **{name: count for name, count in unsettled.items() if count},
    }
    return Report(
        steps=len(trained),
        timings=_timings(trained, records, spans),
        train_flops=sum(
            float(r["flops/train"]) + float(r["flops/logprobs"]) for r in trained.values()
        ),
        inference_flops=sum(float(r["inference_flops"]) for r in made.values()),
        idle_share=_idle_shares(spans),
        generated_per_trained=rollouts / used if used else None,
        lag=dict(sorted(lag.items())),
        tokens_per_s=_tokens_per_second(list(made.values())),
        outcomes=outcomes,
    )


def last_by_step(records: Iterable[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """The last record of every step, in step order."""
    found = {int(record["step"]): record for record in records}
    return dict(sorted(found.items()))


def last_by_submission(
    records: Iterable[Mapping[str, Any]],
) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """The last record of every submission that a worker made."""
    return {
        (record["process"], record["step"], record["submission"]): record
        for record in records
        if "inference_flops" in record
    }


def _spans(run_dir: Path) -> list[_Span]:
    return [
        _Span(
            process,
            str(record["name"]),
            record["ts"] * MICROSECONDS,
            (record["ts"] + record["dur"]) * MICROSECONDS,
            record.get("args", {}),
        )
        for process, records in read_trace(run_dir).items()
        for record in records
        if "dur" in record
    ]


def _timings(
    trained: Mapping[int, Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    spans: Sequence[_Span],
) -> dict[str, Timing]:
    published = {int(span.args["version"]): span.start for span in spans if span.name == "publish"}
    loaded: dict[int, float] = {}
    for span in spans:
        if span.name == "load_policy":
            version = int(span.args["version"])
            loaded[version] = min(loaded.get(version, span.end), span.end)
    served = {
        int(record["step"]): int(record["version"])
        for record in records
        if "inference_flops" in record
    }
    closed = {
        int(record["step"]): float(record["time"])
        for record in records
        if "intake/closed_groups" in record
    }
    validated = any(span.name == "validate" for span in spans)
    judge = "validate" if validated else "intake"  # who looks at the rows
    seconds: dict[str, list[float]] = {
        "broadcast": [loaded[v] - start for v, start in published.items() if v in loaded],
        "batch_ready": [
            closed[step] - loaded[version]
            for step, version in served.items()
            if step in closed and version in loaded and closed[step] > loaded[version]
        ],
        "validation": [span.end - span.start for span in spans if span.name == judge],
        "step": [float(record["time/busy_s"]) for record in trained.values()],
        "wait": [float(record["time/idle_s"]) for record in trained.values()],
    }
    return {name: Timing.of(values) for name, values in seconds.items() if values}


def _idle_shares(spans: Sequence[_Span]) -> dict[str, float]:
    """Waiting over the time from a process's first to its last span."""
    shares = {}
    for process in sorted({span.process for span in spans}):
        mine = [span for span in spans if span.process == process]
        life = max(span.end for span in mine) - min(span.start for span in mine)
        waits = [span for span in mine if span.name == "wait"]
        if waits and life > 0:
            shares[process] = sum(span.end - span.start for span in waits) / life
    return shares


def _tokens_per_second(made: Sequence[Mapping[str, Any]]) -> float | None:
    times = [float(record["time"]) for record in made]
    if len(times) < 2 or max(times) == min(times):
        return None
    # The first submission's time is the start of the window, so its tokens lie before it.
    tokens = sum(int(r["completion_tokens"]) for r in made if float(r["time"]) > min(times))
    return tokens / (max(times) - min(times))
