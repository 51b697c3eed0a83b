"""The online filter: a group whose rewards are all equal teaches nothing and is replaced.

Called by the intake for each finished group; the comparison is exact, as the advantage's zero is.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prime_core.api import Context, Decision, Params, RewardedGroup


class NonzeroSignalParams(Params):
    """Which number must differ."""

    by: Literal["total", "task"] = Field(
        "total",
        description="total: the whole reward; task: the score alone, since with a length term "
        "hardly any group has equal totals",
    )


class NonzeroSignal:
    """Keeps a group unless all its rewards are exactly equal."""

    def __init__(self, params: NonzeroSignalParams) -> None:
        self._by = params.by

    def keep_group(self, group: RewardedGroup) -> Decision:
        """Keep or drop; fewer than two scored rollouts can't differ."""
        values: set[float | None]
        if self._by == "total":
            values = {reward.total for reward in group.rewards}
        else:
            values = {rollout.score.value for rollout in group.group.rollouts}
        if len(group.rewards) < 2:
            return Decision(False, "fewer than two scored rollouts")
        if len(values) == 1:
            return Decision(False, f"equal {self._by} rewards")
        return Decision(True, f"different {self._by} rewards")


def make_nonzero_signal(params: NonzeroSignalParams, context: Context) -> NonzeroSignal:
    """The data filter `nonzero_signal`."""
    return NonzeroSignal(params)
