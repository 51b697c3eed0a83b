"""What any dispatch of a run had to generate: the assignment joined with the run's task lists.

Called by the intake and by validators; a pure function of the dispatch and of what the run was
prepared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prime_core.assignment import AssignmentKey, EnvironmentShare, GroupAssignment, assign, beacon
from prime_core.store.records import Dispatch, TaskList


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What an outcome row says of a rollout beside its fate. `task_id` "" where unknown."""

    group_id: str
    sample: int
    environment: str
    task_id: str
    status: str
    score: float | None
    reward: float | None
    length: int


class Assigner:
    """The assignment of any dispatch of a run.

    Args:
        run_id, shares: what keys it; shares in the config's order.
        tasks: filtered task lists by environment label.
    """

    def __init__(
        self, run_id: str, shares: Sequence[EnvironmentShare], tasks: Mapping[str, TaskList]
    ) -> None:
        self._run_id, self._shares, self._tasks = run_id, list(shares), tasks

    def groups(self, dispatch: Dispatch) -> list[tuple[GroupAssignment, str]]:
        """Each group with its task's id; keyed by the seal that the dispatch names."""
        seal = bytes.fromhex(dispatch.policy_digest)
        key = AssignmentKey(
            self._run_id, beacon(self._run_id, seal), dispatch.node, dispatch.step, dispatch.n
        )
        assigned = assign(key, self._shares, dispatch.groups, dispatch.group_size)
        return [(group, self._tasks[group.environment].task_ids[group.task]) for group in assigned]

    def facts(self, dispatch: Dispatch) -> list[SampleFacts]:
        """What is known of a dispatch's rollouts without its submission."""
        return [
            SampleFacts(group.group_id, sample, group.environment, task_id, "", None, None, 0)
            for group, task_id in self.groups(dispatch)
            for sample in range(dispatch.group_size)
        ]
