"""Reports in the formats that people and machines read."""

from __future__ import annotations

from prime_core.check.outcome import Report
from prime_core.check.text_format import as_text


def render(report: Report, form: str, *, verbose: bool = False) -> str:
    """The report in one format."""
    return as_text(report, verbose=verbose)
