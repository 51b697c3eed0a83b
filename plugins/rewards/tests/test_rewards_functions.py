"""Rewards against the paper's formula, worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_rewards import TaskMinusLengthParams, TaskReward, make_task_minus_length, prime_rewards
from pydantic import ValidationError

from prime_core.api import Completion, Score, ScoredGroup, ScoredRollout, Task
from prime_core.testing.context import OfflineContext


def group(*rollouts: tuple[float, int], budget: int | None = None) -> ScoredGroup:
    return ScoredGroup(
        Task("1", ()),
        tuple(
            ScoredRollout(Completion("x", token_count=tokens), Score(value))
            for value, tokens in rollouts
        ),
        budget,
    )


def test_task_is_the_score_alone() -> None:
    rewards = TaskReward().reward(group((1.0, 10), (0.25, 99), budget=1000))
    assert [(reward.total, dict(reward.parts)) for reward in rewards] == [
        (1.0, {"task": 1.0}),
        (0.25, {"task": 0.25}),
    ]


def test_length_costs_alpha_per_token_off_the_target_on_both_sides() -> None:
    reward = make_task_minus_length(TaskMinusLengthParams(), OfflineContext(Path("unused")))
    short, long, exact = reward.reward(group((1.0, 900), (1.0, 1100), (0.0, 1000), budget=1000))
    assert short.total == long.total == 1.0 - 0.0003 * 100
    assert short.parts == {"task": 1.0, "length": -0.0003 * 100}
    assert exact.total == 0.0


def test_parts_add_up_to_the_total() -> None:
    reward = make_task_minus_length(
        TaskMinusLengthParams(alpha=0.01), OfflineContext(Path("unused"))
    )
    for one in reward.reward(group((0.5, 3), (1.0, 70), budget=20)):
        assert one.total == sum(one.parts.values())


def test_without_a_budget_only_the_task_counts() -> None:
    reward = make_task_minus_length(TaskMinusLengthParams(), OfflineContext(Path("unused")))
    assert reward.reward(group((1.0, 5000)))[0].parts == {"task": 1.0}


def test_a_valueless_score_never_becomes_a_reward() -> None:
    bad = ScoredGroup(Task("1", ()), (ScoredRollout(Completion("x"), Score(None, "error")),))
    with pytest.raises(ValueError, match="'error' has no reward"):
        TaskReward().reward(bad)


@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf")])
def test_alpha_is_a_finite_price(alpha: float) -> None:
    with pytest.raises(ValidationError):
        TaskMinusLengthParams(alpha=alpha)


def test_both_are_registered() -> None:
    assert [spec.name for spec in prime_rewards()] == ["task", "task_minus_length"]
