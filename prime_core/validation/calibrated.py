"""What a calibration found: thresholds, odds of honest and false proofs, margins of races.

Made by `calibration`, shown and written by `prime-core toploc calibrate`. Plain values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prime_core.toploc import Thresholds
from prime_core.toploc.noise import (
    Extremes,
    Odds,
    Sequences,
    best,
    false_accepts,
    false_rejects,
    worst,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAPER = Thresholds()
_MARGIN_SLACK = 4.0  # the replay allows this many times the largest, and the mean, honest gap
_LEAST_MARGIN = 1e-3
_LEAST_LOSS = 2e-6  # the check's own default in float32


@dataclass(frozen=True, slots=True)
class Measured:
    """How proofs of one kind fare.

    Attributes:
        extremes: of honest kinds the worst that was seen in any chunk, of false ones the best.
        fitted, paper: odds under the fitted thresholds and under the paper's: rejected chunks of
            honest kinds, accepted ones of false kinds.
    """

    extremes: Extremes
    fitted: Odds
    paper: Odds


@dataclass(frozen=True, slots=True)
class RaceGaps:
    """By how many nats honest tokens lost their replayed Gumbel race.

    Attributes:
        lost: tokens with any gap at all.
        p9999: the 99.99th percentile.
        margin: what the check `replay` should allow one token.
        file_loss: what it should allow the tokens of a file, each on average.
    """

    tokens: int
    lost: int
    p9999: float
    largest: float
    margin: float
    file_loss: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured.

    Attributes:
        forged: the forgeries that the fitted thresholds let pass.
        model: digest of the model's config and weights.
        fingerprint: of the validating engine, its dtype included.
        chunks: honest ones.
    """

    thresholds: Thresholds
    honest: Mapping[str, Measured]
    false: Mapping[str, Measured]
    forgeries: Mapping[str, Measured]
    races: Mapping[str, RaceGaps]
    forged: tuple[str, ...]
    model: str
    fingerprint: str
    chunks: int

    @property
    def margin(self) -> float:
        """The replay's margin over all honest settings."""
        return max(each.margin for each in self.races.values())

    @property
    def file_loss(self) -> float:
        """The replay's mean loss of a file's tokens over all honest settings."""
        return max(each.file_loss for each in self.races.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the dataclasses' own names."""
        return {**asdict(self), "margin": self.margin, "file_loss": self.file_loss}


def measure_races(gaps: NDArray[np.float64]) -> RaceGaps:
    largest = float(gaps.max(initial=0.0))
    return RaceGaps(
        tokens=len(gaps),
        lost=int(np.count_nonzero(gaps)),
        p9999=float(np.quantile(gaps, 0.9999)) if len(gaps) else 0.0,
        largest=largest,
        margin=max(_LEAST_MARGIN, _MARGIN_SLACK * largest),
        file_loss=max(_LEAST_LOSS, _MARGIN_SLACK * float(gaps.mean()) if len(gaps) else 0.0),
    )


def measure_honest(judged: Sequences, fitted: Thresholds) -> Measured:
    return Measured(worst(judged), false_rejects(judged, fitted), false_rejects(judged, PAPER))


def measure_false(judged: Sequences, fitted: Thresholds) -> Measured:
    return Measured(best(judged), false_accepts(judged, fitted), false_accepts(judged, PAPER))
