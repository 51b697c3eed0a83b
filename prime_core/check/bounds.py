"""How sure a rate is: exact binomial bounds, without scipy.

Rules of truth and of hacks use them. Source: Clopper and Pearson, Biometrika 26 (1934).
"""

from __future__ import annotations

import math

CONFIDENCE = 0.99  # of one-sided claims that a policy is paid too much


def at_least(count: float, trials: int, probability: float) -> float:
    """P(X >= count) of X binomial; a count between two whole numbers is rounded down."""
    first = math.floor(count + 1e-9)
    if first <= 0:
        return 1.0
    if probability <= 0.0:
        return 0.0
    if probability >= 1.0:
        return 1.0
    log_p, log_q = math.log(probability), math.log1p(-probability)
    total = 0.0
    for successes in range(first, trials + 1):
        log_choose = (
            math.lgamma(trials + 1)
            - math.lgamma(successes + 1)
            - math.lgamma(trials - successes + 1)
        )
        total += math.exp(log_choose + successes * log_p + (trials - successes) * log_q)
    return min(1.0, total)


def lower_bound(count: float, trials: int, confidence: float = CONFIDENCE) -> float:
    """The lowest rate that `count` of `trials` is still likely for; 0 without trials."""
    if trials == 0 or count <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if at_least(count, trials, middle) > 1 - confidence:
            high = middle
        else:
            low = middle
    return low


def upper_bound(count: float, trials: int, confidence: float = CONFIDENCE) -> float:
    """The highest rate that `count` of `trials` is still likely for; 1 without trials."""
    return (
        1.0 - lower_bound(trials - math.floor(count + 1e-9), trials, confidence) if trials else 1.0
    )


def interval(count: int, trials: int) -> str:
    """A rate with its two-sided 95 % interval, as text."""
    if trials == 0:
        return "no cases"
    low, high = lower_bound(count, trials, 0.975), upper_bound(count, trials, 0.975)
    return f"{count}/{trials} = {count / trials:.2%} [{low:.2%}, {high:.2%}]"


def exceeds(total: float, trials: int, chance: float, whole: bool, comparisons: int = 1) -> bool:
    """Whether a mean of values in [0, 1] is above the chance level.

    Args:
        total: sum of the values.
        whole: the trials are all that there is, so that the mean is no estimate.
        comparisons: claims made at once; each gets its share of the error probability.
    """
    if whole:
        return total / trials > chance + 1e-9
    return at_least(total, trials, chance) < (1 - CONFIDENCE) / comparisons
