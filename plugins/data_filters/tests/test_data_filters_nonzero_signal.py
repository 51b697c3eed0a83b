"""Groups with and without signal, by total and by task reward."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_data_filters import NonzeroSignalParams
from prime_data_filters.nonzero_signal import make_nonzero_signal

from prime_core.api import (
    Completion,
    Decision,
    Reward,
    RewardedGroup,
    Score,
    ScoredGroup,
    ScoredRollout,
    Task,
)
from prime_core.testing.context import OfflineContext


def group(*rows: tuple[float, float]) -> RewardedGroup:
    """A group of (score, total reward) rows."""
    rollouts = tuple(ScoredRollout(Completion("x"), Score(score)) for score, _ in rows)
    rewards = tuple(Reward(total, {"task": score}) for score, total in rows)
    return RewardedGroup("0-a-0-0", "e", ScoredGroup(Task("1", ()), rollouts), rewards)


def decide(made: RewardedGroup, by: str = "total") -> Decision:
    params = NonzeroSignalParams.model_validate({"by": by})
    return make_nonzero_signal(params, OfflineContext(Path("unused"))).keep_group(made)


def test_equal_totals_are_dropped_and_different_ones_kept() -> None:
    assert decide(group((1, 1), (1, 1))) == Decision(False, "equal total rewards")
    assert decide(group((0, 0), (1, 1))) == Decision(True, "different total rewards")


def test_by_task_looks_through_a_length_term() -> None:
    only_lengths_differ = group((1, 0.9), (1, 0.8))
    assert decide(only_lengths_differ).keep
    assert decide(only_lengths_differ, "task") == Decision(False, "equal task rewards")


def test_equality_is_exact() -> None:
    assert decide(group((1, 0.1 + 0.2), (1, 0.3))).keep
    assert not decide(group((0, 0.0), (0, -0.0))).keep


@pytest.mark.parametrize("rows", [(), ((1.0, 1.0),)])
@pytest.mark.parametrize("by", ["total", "task"])
def test_fewer_than_two_scored_rollouts_carry_none(
    rows: tuple[tuple[float, float]], by: str
) -> None:
    assert decide(group(*rows), by) == Decision(False, "fewer than two scored rollouts")
