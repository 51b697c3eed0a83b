"""Check `sampling`: tokens look drawn at the run's temperature, over all and in every window.

The log-probability of a drawn token has a known mean and variance at each position, and its place
between the rarest and the likeliest token is uniform. Text that is too likely (greedy, another
temperature), too unlikely (another model, an edited passage) or both in turn (bimodal) is off.
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
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few, spoken

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPREAD_VARIANCE = 4 / 45  # of the square of a uniform variable in [-1, 1]


class SamplingParams(Params):
    """Parameters of the check `sampling`; limits are in standard deviations."""

    file_limit: float = Field(6.0, gt=0, description="of all rows that are looked at, together")
    row_limit: float = Field(8.0, gt=0, description="of one rollout")
    window_limit: float = Field(9.0, gt=0, description="of one window, downwards only")
    window: int = Field(16, ge=2, description="tokens of a window")
    shape_limit: float = Field(
        6.0, gt=0, description="of the spread of tokens' places, of a rollout and of all of them"
    )
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
        places: list[NDArray[np.float64]] = []
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
            places.append(_spreads(prefill))
            yield from self._shape(places[-1], "it", index)
        if places:
            yield from self._shape(np.concatenate(places), "the whole file")
        z = total / (variance + params.floor) ** 0.5
        if not abs(z) <= params.file_limit:
            yield Finding("reject", f"the whole file is {_word(z)} to be drawn ({z:.1f})")

    def _shape(
        self, spreads: NDArray[np.float64], what: str, index: int | None = None
    ) -> Iterator[Finding]:
        """Whether tokens stand at both ends, or at neither, more often than drawn ones."""
        z = float((spreads - 1 / 3).sum()) / (spreads.size * _SPREAD_VARIANCE) ** 0.5
        if not abs(z) <= self._params.shape_limit:
            word = "is bimodal: likely and unlikely tokens in turn" if z > 0 else "is too even"
            yield Finding("reject", f"{what} {word} ({z:.1f} deviations)", index)

    def _lowest(self, away: NDArray[np.float64], spread: NDArray[np.float64]) -> tuple[float, int]:
        """The lowest window, in deviations, and its first token."""
        width = min(self._params.window, away.size)
        kernel = np.ones(width)
        sums = np.convolve(away, kernel, "valid")
        z = sums / np.sqrt(np.convolve(spread, kernel, "valid") + self._params.floor)
        place = int(np.argmin(z))
        return float(z[place]), place


def _spreads(prefill: RowPrefill) -> NDArray[np.float64]:
    """How far each token's place is from the middle, squared, 0 to 1; 1/3 on average if drawn.

    The place of a drawn token, uniform within its own probability, is uniform in [-1, 1]. Taking
    the mean over that leaves the expectation of its square and lowers the variance.
    """
    low, high = 2 * np.asarray(prefill.lower) - 1, 2 * np.asarray(prefill.upper) - 1
    found: NDArray[np.float64] = (low * low + low * high + high * high) / 3
    return found


def _word(z: float) -> str:
    return "too likely" if z > 0 else "too unlikely"


def make_sampling(params: SamplingParams, context: Context) -> Sampling:
    """Factory of the spec."""
    return Sampling(params)


SPEC = SanityCheckSpec(
    name="sampling",
    params=SamplingParams,
    factory=make_sampling,
    summary="Chosen-token probabilities against what the temperature predicts",
    cost="shares one forward pass",
    catches="greedy or other text, bimodal text, appended and edited passages",
)
