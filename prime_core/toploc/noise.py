"""From measured agreement to thresholds: what honest nodes show, what others show, and the odds.

Called by calibration with verdicts of honest and of false proofs; pure functions. Verdicts hold
their numbers whatever thresholds they were made with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from prime_core.toploc.proof import TOPK
from prime_core.toploc.verifying import NO_AGREEMENT, ChunkVerdict, Thresholds

Sequences: TypeAlias = Sequence[Sequence[ChunkVerdict]]

PAPER = Thresholds()
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happened, with an upper bound that holds with 95 % confidence."""

    count: int
    of: int
    bound: float

    def __str__(self) -> str:
        return f"{self.count} of {self.of} (<= {100 * self.bound:.3g} %)"


@dataclass(frozen=True, slots=True)
class Extremes:
    """The worst, or the best, that one kind of proofs showed in any chunk.

    Attributes:
        exponent_mismatches: of 128 points; scaled up for chunks with fewer.
    """

    exponent_mismatches: float
    mantissa_mean: float
    mantissa_median: float


@dataclass(frozen=True, slots=True)
class Odds:
    """How one kind of proofs fares under some thresholds.

    Attributes:
        chunks: accepted chunks (for honest proofs: rejected ones).
        sequences: sequences whose chunks are all accepted (for honest proofs: not all).
    """

    chunks: Rate
    sequences: Rate


def upper_bound(count: int, of: int, confidence: float = CONFIDENCE) -> float:
    """Clopper-Pearson's one-sided upper bound on a probability, 1.0 without trials."""
    if of == 0 or count >= of:
        return 1.0
    low, high = count / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(count, of, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def worst(honest: Sequences) -> Extremes:
    """The largest values of honest chunks."""
    return _extremes(honest, max)


def best(false: Sequences) -> Extremes:
    """The smallest values of false chunks; those of no agreement where there is no chunk."""
    return _extremes(false, min)


def fit_thresholds(honest: Sequences, *, slack: float = 2.0) -> Thresholds:
    """Thresholds that honest noise reaches half of (by `slack`), and never wider than the paper's.

    A few units are added, as the noise of exact arithmetic would else leave no room at all.

    Args:
        honest: verdicts of honest sequences, of every engine and setting that the run allows.
    """
    seen = worst(honest)
    return Thresholds(
        exponent_mismatches=min(
            PAPER.exponent_mismatches, math.ceil(slack * seen.exponent_mismatches) + 4
        ),
        mantissa_mean=min(PAPER.mantissa_mean, round(slack * seen.mantissa_mean + 0.1, 2)),
        mantissa_median=min(PAPER.mantissa_median, math.ceil(slack * seen.mantissa_median) + 1.0),
    )


def accepts(verdict: ChunkVerdict, thresholds: Thresholds) -> bool:
    """Whether a chunk's numbers are within other thresholds than it was judged by."""
    return thresholds.allow(
        verdict.exponent_mismatches, verdict.mantissa_mean, verdict.mantissa_median, verdict.points
    )


def false_rejects(honest: Sequences, thresholds: Thresholds) -> Odds:
    """How many honest chunks and sequences the thresholds reject."""
    passed = [[accepts(verdict, thresholds) for verdict in chunks] for chunks in honest]
    return _odds([[not each for each in chunks] for chunks in passed], whole=any)


def false_accepts(false: Sequences, thresholds: Thresholds) -> Odds:
    """How many false chunks and sequences the thresholds accept."""
    return _odds(
        [[accepts(verdict, thresholds) for verdict in chunks] for chunks in false], whole=all
    )


def passing(forgeries: Mapping[str, Sequences], thresholds: Thresholds) -> dict[str, Odds]:
    """The forgeries of which any chunk is accepted; a setting with one isn't fit for use."""
    odds = {name: false_accepts(false, thresholds) for name, false in forgeries.items()}
    return {name: each for name, each in odds.items() if each.chunks.count}


def _odds(hits: Sequence[Sequence[bool]], *, whole: Callable[[Iterable[bool]], bool]) -> Odds:
    chunks = [hit for each in hits for hit in each]
    sequences = [whole(each) for each in hits if each]
    return Odds(_rate(chunks), _rate(sequences))


def _rate(hits: Sequence[bool]) -> Rate:
    return Rate(sum(hits), len(hits), upper_bound(sum(hits), len(hits)))


def _extremes(sequences: Sequences, pick: Callable[[Iterable[float]], float]) -> Extremes:
    chunks = [verdict for each in sequences for verdict in each]
    if not chunks:
        return Extremes(TOPK, NO_AGREEMENT, NO_AGREEMENT)
    return Extremes(
        pick(each.exponent_mismatches * TOPK / each.points for each in chunks),
        pick(each.mantissa_mean for each in chunks),
        pick(each.mantissa_median for each in chunks),
    )


def _at_most(count: int, of: int, probability: float) -> float:
    """P(X <= count) of a binomial; summed in logarithms, exact enough for any number of trials."""
    if probability <= 0:
        return 1.0
    if probability >= 1:
        return 0.0
    log_p, log_q = math.log(probability), math.log1p(-probability)
    return math.fsum(
        math.exp(
            math.lgamma(of + 1)
            - math.lgamma(hit + 1)
            - math.lgamma(of - hit + 1)
            + hit * log_p
            + (of - hit) * log_q
        )
        for hit in range(count + 1)
    )
