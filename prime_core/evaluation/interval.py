"""Means of scores with their uncertainty; used by evaluation and its printed tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Two-sided 95 % quantile of the normal distribution.
Z_95 = 1.959963984540054


def wilson(mean: float, count: float, z: float = Z_95) -> tuple[float, float]:
    """The Wilson score interval of a proportion.

    Args:
        mean: observed share, in [0, 1]; for graded scores, which vary less than 0/1 scores of the
            same mean, the interval is wider than it need be.
        count: independent observations, or as many as they are worth.

    Returns:
        Lowest and highest plausible share; (0, 1) without observations.
    """
    if count == 0:
        return 0.0, 1.0
    square = z * z / count
    centre = (mean + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(mean * (1 - mean) / count + square / (4 * count))
    return max(0.0, centre - half), min(1.0, centre + half)


def scaled_wilson(mean: float, count: int, score_range: tuple[float, float]) -> tuple[float, float]:
    """The Wilson interval of a mean score in the environment's range."""
    low, high = score_range
    if high == low:
        return low, high
    share = min(1.0, max(0.0, (mean - low) / (high - low)))
    bottom, top = wilson(share, count)
    return low + bottom * (high - low), low + top * (high - low)


def clustered_wilson(shares: Sequence[float], draws: int) -> tuple[float, float]:
    """The Wilson interval of the mean of tasks' shares, where each task was drawn several times.

    Several samples of one task say less than as many tasks, and more than one sample. So the count
    is the effective one: that of independent 0/1 observations whose mean would vary as the tasks'
    shares do (Kish's design effect). Where the mean is 0 or 1 nothing is known of how they vary,
    and the tasks count.

    Args:
        shares: one value in [0, 1] a task.
        draws: independent draws in all, the most that the effective count can be.

    Returns:
        Lowest and highest plausible mean over all tasks of the kind; (0, 1) without tasks.
    """
    count = len(shares)
    if count < 2:
        return wilson(sum(shares), count)
    mean = math.fsum(shares) / count
    spread = math.fsum((share - mean) ** 2 for share in shares) / (count - 1)
    single = mean * (1 - mean)
    most = float(max(count, draws))
    if single <= 0:
        return wilson(min(1.0, max(0.0, mean)), count)
    effective = most if spread == 0 else min(most, max(float(count), single * count / spread))
    return wilson(mean, effective)
