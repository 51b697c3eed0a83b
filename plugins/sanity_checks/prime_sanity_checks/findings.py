"""What the checks share: findings of rows, at most a few a file, and the rows that carry tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from prime_core.api import CheckContext, Finding, RolloutView, SubmissionView

MOST = 8  # of one check; the first decides, the others help whoever looks


def few(found: Iterable[Finding]) -> list[Finding]:
    """The first findings; a generator isn't asked for more."""
    return list(islice(found, MOST))


def spoken(submission: SubmissionView, context: CheckContext) -> list[int]:
    """Rows to look at in which the model said anything."""
    return [index for index in context.rows if submission.rows[index].length]


def model_values(row: RolloutView, values: Sequence[float]) -> list[float]:
    """The entries of a column of the completion that are the model's, [T] to [N]."""
    return [value for value, own in zip(values, row.completion_mask, strict=True) if own]


def by_dtype(value: float | None, dtype: str, float32: float, bfloat16: float) -> float:
    """A threshold that depends on the run's rounding where the config sets none."""
    if value is not None:
        return value
    return bfloat16 if dtype == "bfloat16" else float32
