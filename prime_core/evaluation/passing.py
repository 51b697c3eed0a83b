"""pass@k: the chance that one of k completions of a task solves it, without bias, with intervals.

Used by the summaries of `prime-core eval`, `score` and `profile`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prime_core.evaluation.interval import clustered_wilson


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks with its 95 % interval.

    Attributes:
        mean: None where no task counts; then the interval is everything.
        tasks: tasks that count.
    """

    mean: float | None
    low: float
    high: float
    tasks: int


def pass_at_k(samples: int, passes: int, k: int) -> float:
    """The unbiased estimate of pass@k from `passes` of `samples` completions, samples >= k.

    1 - C(samples - passes, k) / C(samples, k) as a product, which can't overflow
    (Chen et al. 2021, arXiv 2107.03374, section 2.1).
    """
    if not 1 <= k <= samples or not 0 <= passes <= samples:
        raise ValueError(f"pass@{k} of {passes} passes in {samples} samples")
    if samples - passes < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(samples - passes + 1, samples + 1))


def estimate_pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> Estimate:
    """pass@k over tasks.

    Args:
        counts: (scored completions, passes) of each task; tasks with fewer than k are left out.
    """
    usable = [(samples, passes) for samples, passes in counts if samples >= k]
    shares = [pass_at_k(samples, passes, k) for samples, passes in usable]
    if not shares:
        return Estimate(None, 0.0, 1.0, 0)
    low, high = clustered_wilson(shares, sum(samples // k for samples, _ in usable))
    return Estimate(math.fsum(shares) / len(shares), low, high, len(shares))


def estimate_mean(means: Sequence[float], draws: int, score_range: tuple[float, float]) -> Estimate:
    """The mean of tasks' mean scores, its interval within the score range.

    Args:
        means: one mean score a task.
        draws: scored completions in all.
    """
    low, high = score_range
    if not means:
        return Estimate(None, low, high, 0)
    mean = math.fsum(means) / len(means)
    if high == low:
        return Estimate(mean, low, high, len(means))
    shares = [min(1.0, max(0.0, (one - low) / (high - low))) for one in means]
    bottom, top = clustered_wilson(shares, draws)
    return Estimate(mean, low + bottom * (high - low), low + top * (high - low), len(means))


def default_ks(samples: int) -> list[int]:
    """1, 2, 4, ... up to `samples`, and `samples` itself."""
    ks = [1 << power for power in range(max(1, samples).bit_length()) if 1 << power <= samples]
    return sorted({*ks, max(1, samples)})
