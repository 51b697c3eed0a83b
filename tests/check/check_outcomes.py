"""What tests of the check ask of a report."""

from __future__ import annotations

from prime_core.check.outcome import Report


def failed(report: Report) -> set[str]:
    """Ids of the rules that failed."""
    return {outcome.rule.id for outcome in report.outcomes if outcome.status == "failed"}
