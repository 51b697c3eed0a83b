"""Means of scores with their uncertainty; used by evaluation and its printed tables."""

from __future__ import annotations

import math

# Two-sided 95 % quantile of the normal distribution.
Z_95 = 1.959963984540054


def wilson(mean: float, count: int, z: float = Z_95) -> tuple[float, float]:
    """The Wilson score interval of a proportion.

    Args:
        mean: observed share, in [0, 1]; for graded scores, which vary less than 0/1 scores of the
            same mean, the interval is wider than it need be.
        count: independent observations.

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
