"""Reward functions: the task's score alone, or the score less a price for missing the length.

Found through the entry points `reward.task` and `reward.task_minus_length`; run in environment
hosts, on groups whose every rollout carries a score value.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from prime_core.api import (
    Context,
    NoParams,
    Params,
    Reward,
    RewardSpec,
    ScoredGroup,
    ScoredRollout,
    hookimpl,
)

__all__ = [
    "TaskMinusLengthParams",
    "TaskMinusLengthReward",
    "TaskReward",
    "make_task",
    "make_task_minus_length",
    "prime_rewards",
]


def task_value(rollout: ScoredRollout) -> float:
    """The score's value; a group that reaches a reward function holds no valueless score."""
    value = rollout.score.value
    if value is None:
        raise ValueError(f"a score of status {rollout.score.status!r} has no reward")
    return value


class TaskReward:
    """total = the score's value."""

    def reward(self, group: ScoredGroup) -> Sequence[Reward]:
        """One reward per rollout, with the part `task`."""
        values = [task_value(rollout) for rollout in group.rollouts]
        return [Reward(value, {"task": value}) for value in values]


class TaskMinusLengthParams(Params):
    """The price of a token too many or too few."""

    # INTELLECT-2 (arXiv 2505.07291), section on length rewards: alpha = 0.0003.
    alpha: float = Field(
        0.0003, ge=0, allow_inf_nan=False, description="reward lost per token off the target"
    )


class TaskMinusLengthReward:
    """total = score - alpha * |target - length|, INTELLECT-2's length reward.

    The length is `completion.token_count`: the model's tokens over all turns, EOS included. A
    group without a length budget has no part `length`, and its total is the score's value.
    """

    def __init__(self, params: TaskMinusLengthParams) -> None:
        self._alpha = params.alpha

    def reward(self, group: ScoredGroup) -> Sequence[Reward]:
        """One reward per rollout; the parts `task` and `length` add up to the total."""
        if group.length_budget is None:
            return TaskReward().reward(group)
        return [self._one(rollout, group.length_budget) for rollout in group.rollouts]

    def _one(self, rollout: ScoredRollout, target: int) -> Reward:
        task = task_value(rollout)
        length = -self._alpha * abs(target - rollout.completion.token_count)
        return Reward(task + length, {"task": task, "length": length})


def make_task(params: NoParams, context: Context) -> TaskReward:
    """The reward `task`."""
    return TaskReward()


def make_task_minus_length(
    params: TaskMinusLengthParams, context: Context
) -> TaskMinusLengthReward:
    """The reward `task_minus_length`."""
    return TaskMinusLengthReward(params)


@hookimpl
def prime_rewards() -> list[RewardSpec]:
    """Register both reward functions."""
    return [
        RewardSpec(name="task", factory=make_task, summary="The score's value and nothing else"),
        RewardSpec(
            name="task_minus_length",
            params=TaskMinusLengthParams,
            factory=make_task_minus_length,
            summary="The score less alpha per token off the length budget's target",
        ),
    ]
