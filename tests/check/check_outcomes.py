"""What tests of the check ask of a report."""

from __future__ import annotations

from prime_core.check.limits import Limits
from prime_core.check.outcome import Report

SMALL = Limits(tasks=40, sample=24, item_s=1.5)  # of checks of the small distributions


def failed(report: Report) -> set[str]:
    """Ids of the rules that failed."""
    return {outcome.rule.id for outcome in report.outcomes if outcome.status == "failed"}
