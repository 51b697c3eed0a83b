"""What is said of a verdict: the metrics of a validator, and a page for a person.

Called by the validator after each verdict, and by `prime-core validate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prime_core.store.verdicts import Verdict
from prime_core.validation.judging import Judgement


def metrics_of(
    verdict: Verdict, judgement: Judgement, seconds: float, loads: int
) -> dict[str, Any]:
    """Metrics of one file: cost by check, findings by check and severity, who and why.

    Args:
        seconds: that judging took.
        loads: policy versions loaded so far.
    """
    values: dict[str, Any] = {
        "validator/files": 1,
        "validator/node": verdict.node,
        "validator/decision": verdict.decision,
        "validator/full": int(verdict.full),
        "validator/seconds": seconds,
        "validator/bytes": verdict.size,
        "validator/dropped_groups": len(verdict.dropped),
        "validator/policy_loads": loads,
    }
    if seconds > 0:
        values["validator/checks_per_s"] = len(judgement.asked) / seconds
    if verdict.check:
        values["validator/rejected_by"] = verdict.check
        values["validator/severity"] = verdict.severity
    values |= {f"check/{name}_s": spent for name, spent in judgement.seconds.items()}
    found = Counter(f"{name}_{finding.severity}" for name, finding in judgement.found)
    return values | {f"finding/{name}": count for name, count in found.items()}


def page(verdict: Verdict, seconds: Mapping[str, float], standing: Sequence[Verdict] = ()) -> str:
    """A verdict for a person, 100 columns at most.

    Args:
        seconds: what each check took.
        standing: verdicts of the run's validators on the same submission.
    """
    head = f"submission {verdict.n} of {verdict.node} for step {verdict.step}"
    lines = [
        f"{head}: {verdict.decision.upper()}",
        f"sha256 {verdict.sha256}, {verdict.size} bytes, "
        + ("checked in full" if verdict.full else "spot-checked"),
        "",
    ]
    found: dict[str, list[str]] = {}
    for finding in verdict.findings:
        place = "" if finding.row is None else f" row {finding.row}"
        place += "" if finding.chunk is None else f" chunk {finding.chunk}"
        found.setdefault(finding.check, []).append(f"{finding.severity}{place}: {finding.reason}")
    for run in verdict.checks:
        own = found.get(run.check, [])
        mark = "ok" if not own else "found"
        lines.append(
            f"{run.check:<14} {mark:<6} {run.rows:>6} rows  {seconds.get(run.check, 0.0):8.3f} s"
        )
        lines += [f"{'':<14} {text}" for text in own]
    if verdict.decision == "rejected":
        lines += ["", f"rejected ({verdict.severity}) by {verdict.check}: {verdict.reason}"]
    for group in verdict.dropped:
        lines.append(f"dropped group {group.id} by {group.check}: {group.reason}")
    for other in standing:
        bytes_ = "this file" if other.sha256 == verdict.sha256 else f"other bytes, {other.sha256}"
        said = f"the run's verdict on {bytes_}: {other.decision.upper()}"
        if other.check:
            said += f" ({other.severity}) by {other.check}: {other.reason}"
        lines += ["", said]
    return "\n".join(lines)
