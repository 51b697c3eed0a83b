"""What every data filter keeps: a decision with a short reason, from the arguments alone.

Authors inherit `DataFilterContract` and override `make_data_filter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from prime_core.api import (
    Decision,
    GroupFilter,
    Message,
    PrimeError,
    Reward,
    RewardedGroup,
    Task,
    TaskFilter,
    TaskProfile,
)
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override
from prime_core.testing.contract.reward import scored_group, scored_rollout

DataFilter = TaskFilter | GroupFilter


class DataFilterContract:
    """Inherit, and override `make_data_filter`; it may filter tasks, groups or both."""

    @pytest.fixture
    def make_data_filter(self) -> Callable[[], DataFilter]:
        """A function that makes the data filter anew."""
        made: Callable[[], DataFilter] = override("make_data_filter", "makes the filter")
        return made

    @pytest.fixture
    def data_filter(self, make_data_filter: Callable[[], DataFilter]) -> DataFilter:
        """The data filter under test."""
        return make_data_filter()

    @pytest.fixture
    def profiled(self) -> Sequence[tuple[Task, TaskProfile | None]]:
        """Tasks with the profile of each: every pass rate of 8 attempts, and none at all."""
        cases: list[tuple[Task, TaskProfile | None]] = []
        for passes in range(9):
            task = Task(id=f"t{passes}", prompt=(Message("user", "2+2"),), gold="4")
            cases.append((task, TaskProfile(task.id, passes / 8, 8, passes)))
        cases.append((Task(id="t9", prompt=(Message("user", "2+2"),), gold="4"), None))
        return cases

    @pytest.fixture
    def groups(self) -> Sequence[RewardedGroup]:
        """Groups of 2 and 8 rollouts: all wrong, all right, mixed."""
        made: list[RewardedGroup] = []
        for size in (2, 8):
            for right in (0, 1, size):
                values = [1.0] * right + [0.0] * (size - right)
                group = scored_group([scored_rollout(value, 10) for value in values])
                rewards = tuple(Reward(value, {"task": value}) for value in values)
                made.append(RewardedGroup(f"0-node-0-{len(made)}", "env", group, rewards))
        return made

    def test_filters_tasks_or_groups(self, data_filter: DataFilter) -> None:
        assert missing_members(data_filter, [TaskFilter, GroupFilter]) == []

    def test_task_decisions_repeat_in_any_order(
        self,
        make_data_filter: Callable[[], DataFilter],
        profiled: Sequence[tuple[Task, TaskProfile | None]],
    ) -> None:
        first, second = make_data_filter(), make_data_filter()
        if not isinstance(first, TaskFilter) or not isinstance(second, TaskFilter):
            pytest.skip("it doesn't filter tasks")
        once = [_decide_task(first, *case) for case in profiled]
        again = [_decide_task(second, *case) for case in reversed(profiled)]
        assert once == again[::-1]

    def test_group_decisions_repeat_in_any_order(
        self, make_data_filter: Callable[[], DataFilter], groups: Sequence[RewardedGroup]
    ) -> None:
        first, second = make_data_filter(), make_data_filter()
        if not isinstance(first, GroupFilter) or not isinstance(second, GroupFilter):
            pytest.skip("it doesn't filter groups")
        once = [_checked(first.keep_group(group)) for group in groups]
        again = [_checked(second.keep_group(group)) for group in reversed(groups)]
        assert once == again[::-1]


def _decide_task(
    data_filter: TaskFilter, task: Task, profile: TaskProfile | None
) -> Decision | str:
    """The decision; a filter that needs a profile may say so with an error of our own type."""
    try:
        return _checked(data_filter.keep_task(task, profile))
    except PrimeError as error:
        if profile is not None:
            pytest.fail(f"{task.id} has a profile, and still: {error}")
        return error.what


def _checked(decision: Decision) -> Decision:
    assert isinstance(decision, Decision), f"{decision!r} is not a Decision"
    assert isinstance(decision.keep, bool), f"keep is {decision.keep!r}"
    assert decision.reason, "a decision without a reason"
    assert len(decision.reason) <= 80, f"reasons are counted; keep them short: {decision.reason!r}"
    assert "\n" not in decision.reason
    return decision
