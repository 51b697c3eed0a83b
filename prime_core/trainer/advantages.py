"""Group-relative advantages, computed by the trainer and by nobody else.

`batch.py` calls `GroupNorm.advantages` once a group. Equal rewards give exactly 0: that is decided
by comparing the rewards, because a standard deviation of equal floats isn't always 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class GroupNorm:
    """A_i = (r_i - mean(r)) / (std(r) + epsilon), in float64.

    Attributes:
        std: `population` divides the squared deviations by G, `sample` by G - 1; `none` leaves
            A_i = r_i - mean(r).
        epsilon: added to the standard deviation, so that rewards that differ by rounding alone
            stay near 0 and aren't blown up to unit size.
    """

    std: Literal["population", "sample", "none"] = "sample"
    epsilon: float = 1e-6

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """One advantage per reward, [G] to [G]; a group of one has nothing to be relative to: 0.

        Raises:
            ValueError: for a reward that isn't finite.
        """
        values = [float(reward) for reward in rewards]
        if not all(map(math.isfinite, values)):
            raise ValueError(f"rewards must be finite, got {values}")
        if all(value == values[0] for value in values):
            return [0.0] * len(values)
        mean = math.fsum(values) / len(values)
        deviations = [value - mean for value in values]
        if self.std == "none":
            return deviations
        divisor = len(values) - (self.std == "sample")
        std = math.sqrt(math.fsum(d * d for d in deviations) / divisor)
        if std + self.epsilon == 0.0:  # subnormal differences whose squares underflow
            return [0.0] * len(values)
        return [deviation / (std + self.epsilon) for deviation in deviations]
