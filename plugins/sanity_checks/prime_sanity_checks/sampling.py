"""Check `sampling`: tokens look drawn at the run's temperature, over all and in every window.

The log-probability of a drawn token has a known mean and variance at each position. Text that is
too likely (greedy, another temperature) or too unlikely (another model, a person, an appended or
edited passage) is off by many standard deviations. A statistic: it never slashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    Params,
    RowPrefill,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few, spoken

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SamplingParams(Params):
    """Parameters of the check `sampling`; limits are in standard deviations."""

    file_limit: float = Field(6.0, gt=0, description="of all rows that are looked at, together")
    row_limit: float = Field(8.0, gt=0, description="of one rollout")
    window_limit: float = Field(9.0, gt=0, description="of one window, downwards only")
    window: int = Field(16, ge=2, description="tokens of a window")
    floor: float = Field(
        4.0, gt=0, description="variance added to each sum: rare tokens have heavy tails"
    )


class Sampling:
    """Sums deviations over the file, each rollout and each window."""

    stage: Stage = "model"

    def __init__(self, params: SamplingParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of rows, then of the whole."""
        rows = spoken(submission, context)
        return few(self._problems(rows, context.prefill(rows)))

    def _problems(self, rows: Sequence[int], prefills: Sequence[RowPrefill]) -> Iterator[Finding]:
        params = self._params
        total = variance = 0.0
        for index, prefill in zip(rows, prefills, strict=True):
            away = np.asarray(prefill.logprobs) - np.asarray(prefill.means)
            spread = np.asarray(prefill.variances)
            own, width = float(away.sum()), float(spread.sum())
            total, variance = total + own, variance + width
            z = own / (width + params.floor) ** 0.5
            if not abs(z) <= params.row_limit:
                yield Finding("reject", f"is {_word(z)} to be drawn ({z:.1f} deviations)", index)
            lowest, place = self._lowest(away, spread)
            if not lowest >= -params.window_limit:
                yield Finding(
                    "reject",
                    f"tokens {place} to {place + params.window} are too unlikely "
                    f"({lowest:.1f} deviations): edited or appended text",
                    index,
                )
        z = total / (variance + params.floor) ** 0.5
        if not abs(z) <= params.file_limit:
            yield Finding("reject", f"the whole file is {_word(z)} to be drawn ({z:.1f})")

    def _lowest(self, away: NDArray[np.float64], spread: NDArray[np.float64]) -> tuple[float, int]:
        """The lowest window, in deviations, and its first token."""
        width = min(self._params.window, away.size)
        kernel = np.ones(width)
        sums = np.convolve(away, kernel, "valid")
        z = sums / np.sqrt(np.convolve(spread, kernel, "valid") + self._params.floor)
        place = int(np.argmin(z))
        return float(z[place]), place


def _word(z: float) -> str:
    return "too likely" if z > 0 else "too unlikely"


def make_sampling(params: SamplingParams, context: Context) -> Sampling:
    """Factory of the spec."""
    return Sampling(params)
