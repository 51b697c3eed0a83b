"""What checks share that hold a node's numbers to ours token by token: by rollout, then by file.

Machines differ by rounding, so a single token proves little; a file's tokens together prove much.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prime_core.api import (
    CheckContext,
    Finding,
    RolloutView,
    RowPrefill,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few, spoken

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class OfFile:
    """What all looked-at tokens of a file may be off by, together: `mean` each, `slack` once."""

    mean: float
    slack: float


class Deviations(ABC):
    """A check whose evidence is how far each token is off, in nats."""

    stage: Stage = "model"

    @abstractmethod
    def _off(self, row: RolloutView, prefill: RowPrefill) -> NDArray[np.float64]:
        """How far each of a row's N model tokens is off, [N], never negative."""

    @abstractmethod
    def _of_rollout(self, off: NDArray[np.float64], dtype: str) -> str:
        """What is wrong with one rollout; "" for nothing."""

    @abstractmethod
    def _of_file(self, dtype: str) -> OfFile:
        """What a file may be off by."""

    @abstractmethod
    def _said_of_file(self, mean: float, tokens: int) -> str:
        """The reason for a file that is off by more."""

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of single rows, then of the whole."""
        return few(self._problems(submission, context))

    def _problems(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        dtype = context.run.dtype
        rows, total, tokens = spoken(submission, context), 0.0, 0
        for index, prefill in zip(rows, context.prefill(rows), strict=True):
            off = self._off(submission.rows[index], prefill)
            total, tokens = total + float(off.sum()), tokens + off.size
            if reason := self._of_rollout(off, dtype):
                yield Finding("reject", reason, index)
        limit = self._of_file(dtype)
        if tokens and not total <= limit.mean * tokens + limit.slack:
            yield Finding("reject", self._said_of_file(total / tokens, tokens))
