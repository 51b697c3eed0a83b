"""Judges pairs and cases in hosts, and holds the verdicts against published ones and the list.

Invariant: a disagreement that the list doesn't name is a failure, and so is a listed one that no
longer exists, unless its part wasn't run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from math_verification.ladder import ladder
from math_verification.material import CASES, Absent, Pair
from prime_core.api import Completion, Task
from prime_core.evaluation.verifying import (
    CaseVerdict,
    by_kind,
    read_case_rows,
    verify_cases,
)
from prime_core.hosting.verifier_pool import VerifierPool

LIST = Path(__file__).parents[1] / "math_disagreements.json"
HOSTILE_KINDS = ("injection", "stuffing")

# What the shared cases must show.
MIN_ACCURACY = 0.97
MAX_WRONG_ACCEPTED = 2
MIN_AGREEMENT = 0.985
MAX_CPU_S = 1.0


@dataclass
class Part:
    """One part of the report: figures, and the requirements that it misses."""

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    skipped: str = ""

    def require(self, holds: bool, what: str) -> None:
        """Note a requirement that doesn't hold."""
        if not holds:
            self.failures.append(what)


def listed() -> dict[str, dict[str, str]]:
    """The known disagreements by id: who is right, and why."""
    rows = json.loads(LIST.read_text(encoding="utf-8"))
    return {row["id"]: row for row in rows}


async def judge_cases(pool: VerifierPool, *, peer: bool) -> Part:
    """The shared cases by kind; with `peer` also how math-verify does on them."""
    part = Part("cases")
    if not CASES.is_file():
        part.skipped = f"{CASES.name} isn't in the shared folder; set PRIME_SHARED to it"
        return part
    rows = read_case_rows(CASES)
    cases = await pool.cases([row.fields for row in rows])
    verdicts = await verify_cases(pool, rows, cases, second_opinion=peer)
    counts = by_kind(verdicts)
    every = counts[-1]
    part.figures = {
        "accuracy": every.right / every.count,
        "wrong_accepted": every.accepted_wrong,
        "right_rejected": every.rejected_right,
        "no_value": every.no_value,
        "max_cpu_s": every.max_cpu_s,
        "kinds": {
            line.kind: [line.count, line.right, line.accepted_wrong, line.rejected_right]
            for line in counts[:-1]
        },
        "wrong": [v.row.id for v in verdicts if v.as_expected is False],
    }
    if peer:
        part.figures["math_verify"] = _of_the_peer(verdicts)
    hostile = [line for line in counts if line.kind in HOSTILE_KINDS]
    part.require(every.right / every.count >= MIN_ACCURACY, f"accuracy below {MIN_ACCURACY}")
    part.require(every.accepted_wrong <= MAX_WRONG_ACCEPTED, "too many wrong answers accepted")
    part.require(not any(line.accepted_wrong for line in hostile), "a hostile answer is accepted")
    part.require(every.no_value == 0, "a case has no verdict")
    part.require(every.max_cpu_s < MAX_CPU_S, f"a case takes over {MAX_CPU_S} s of CPU")
    return part


def _of_the_peer(verdicts: Sequence[CaseVerdict]) -> dict[str, float]:
    """How right the second opinions are; none counts as wrong."""
    told = [(v.opinion.value if v.opinion else None, v.row.expected) for v in verdicts]
    return {
        "accuracy": sum(value == expected for value, expected in told) / len(told),
        "wrong_accepted": sum(value == 1.0 and expected == 0.0 for value, expected in told),
    }


async def judge_pairs(
    pool: VerifierPool, name: str, pairs: Sequence[Pair], *, whole: bool = True
) -> Part:
    """Verdicts on real completions or golds against what their publishers say."""
    part = Part(name)
    timed = await pool.verify([(Task(p.id, (), p.gold), Completion(p.completion)) for p in pairs])
    known = listed()
    found = [
        pair.id
        for pair, verdict in zip(pairs, timed, strict=True)
        if verdict.score.value != float(pair.published)
    ]
    seconds = sorted(verdict.cpu_seconds or 0.0 for verdict in timed)
    agreement = 1 - len(found) / len(pairs)
    part.figures = {
        "pairs": len(pairs),
        "agreement": agreement,
        "disagreements": found,
        "median_cpu_ms": 1e3 * seconds[len(seconds) // 2],
        "max_cpu_ms": 1e3 * seconds[-1],
    }
    part.require(agreement >= MIN_AGREEMENT, f"agreement below {MIN_AGREEMENT}")
    part.require(seconds[-1] < MAX_CPU_S, f"a verdict takes over {MAX_CPU_S} s of CPU")
    for pair_id in found:
        part.require(pair_id in known, f"{pair_id} isn't in {LIST.name}")
    if whole:
        judged = {pair.id for pair in pairs}
        for pair_id in sorted(known.keys() & judged - set(found)):
            part.require(False, f"{pair_id} is in {LIST.name}, and there is no disagreement")
    return part


async def climb(pool: VerifierPool) -> Part:
    """The ladder of hostile answers, each under a second of CPU and rightly judged."""
    part = Part("ladder")
    rungs = ladder()
    timed = await pool.verify(
        [(Task(rung.name, (), rung.gold), Completion(rung.completion)) for rung in rungs]
    )
    seconds = {}
    for rung, verdict in zip(rungs, timed, strict=True):
        seconds[rung.name] = verdict.cpu_seconds
        value = verdict.score.value
        part.require(value is not None, f"{rung.name}: {verdict.score.evidence}")
        part.require(
            verdict.cpu_seconds is not None and verdict.cpu_seconds < MAX_CPU_S,
            f"{rung.name} takes {verdict.cpu_seconds} s of CPU",
        )
        if rung.value is not None and value is not None:
            part.require(value == rung.value, f"{rung.name} gets {value}, not {rung.value}")
    part.figures = {
        "rungs": len(rungs),
        "max_cpu_s": max(value or 0.0 for value in seconds.values()),
        "slowest": sorted(seconds, key=lambda name: -(seconds[name] or 0.0))[:3],
    }
    return part


def absent(name: str, error: Absent) -> Part:
    """A part whose data isn't here."""
    return Part(name, skipped=str(error))
