"""Which share of files must be checked in full so that cheating loses: `prime-core audit-plan`.

Plain arithmetic. One cheating file gains `gain` unless it's found; a found one loses the stake and
the rewards that are still locked. With share p and detection power d a file is found with p * d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from prime_core.api import RunError


@dataclass(frozen=True, slots=True)
class Stakes:
    """What a node risks and may win; all in one currency.

    Attributes:
        stake: lost when it's found out.
        locked: rewards that it has earned and would lose too.
        gain: what one cheating file saves or earns beyond an honest one.
        power: probability that a full check finds a cheating file.
    """

    stake: float
    locked: float
    gain: float
    power: float

    def __post_init__(self) -> None:
        numbers = (self.stake, self.locked, self.gain, self.power)
        if not (
            all(map(math.isfinite, numbers))
            and 0 < self.power <= 1
            and self.gain > 0
            and min(self.stake, self.locked) >= 0
        ):
            raise RunError(
                "an audit plan needs finite numbers: a power in (0, 1], a gain above 0, and no "
                "negative loss",
                where="audit-plan",
                fix="correct the numbers",
            )


def expected_gain(stakes: Stakes, share: float) -> float:
    """What one cheating file is worth to the node on average; below 0 it had better be honest."""
    found = share * stakes.power
    return (1 - found) * stakes.gain - found * (stakes.stake + stakes.locked)


def least_share(stakes: Stakes) -> float | None:
    """The smallest share at which cheating gains nothing; None where no share is enough.

    (1 - p d) g = p d L has the solution p = g / (d (g + L)).
    """
    loss = stakes.stake + stakes.locked
    share = stakes.gain / (stakes.power * (stakes.gain + loss))
    return share if share <= 1 else None


def undetected(stakes: Stakes, share: float, files: int) -> float:
    """Probability that so many cheating files in a row are all accepted."""
    return (1 - share * stakes.power) ** files


def files_until_found(stakes: Stakes, share: float, confidence: float = 0.99) -> int:
    """Cheating files after which one is found with this confidence."""
    found = share * stakes.power
    if found >= 1:
        return 1
    files = math.log(1 - confidence) / math.log1p(-found)
    return max(1, math.ceil(files - 1e-9))  # a whole number stays one


def spot_power(groups: int, spot_groups: int, bad_groups: int, power: float) -> float:
    """Probability that a spot check of a file finds it, where only some of its groups are bad.

    Args:
        groups: of the file.
        spot_groups: that are looked at, drawn without replacement; all of them where there are
            fewer.
        bad_groups: that the node cheated in.
        power: probability that a full look finds one bad group.
    """
    spots, bad = min(spot_groups, groups), min(bad_groups, groups)
    missed = sum(
        math.comb(bad, drawn) * math.comb(groups - bad, spots - drawn) * (1 - power) ** drawn
        for drawn in range(min(bad, spots) + 1)
    )
    return 1 - missed / math.comb(groups, spots)


def table(stakes: Stakes, shares: tuple[float, ...]) -> list[dict[str, float]]:
    """One line a share: expected gain, and how long cheating stays undetected."""
    return [
        {
            "share": share,
            "expected_gain": expected_gain(stakes, share),
            "undetected_10": undetected(stakes, share, 10),
            "files_until_found": float(files_until_found(stakes, share)),
        }
        for share in shares
    ]
