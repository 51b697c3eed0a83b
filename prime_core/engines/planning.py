"""From an assignment to prompts: tasks, length budgets, rendered messages, tokens.

Called by workers once a submission, and by validators for the same submission. A group whose prompt
can't be made is planned as failed: its rollouts end as errors, and the other groups go on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from prime_core.api import HostError, Instruction, LengthBudget, Message, RunError, Task
from prime_core.assignment import AssignmentKey, GroupAssignment, group_rng
from prime_core.engines.chat import ChatFormat
from prime_core.engines.turns import Rollout

logger = logging.getLogger(__name__)


class Rendering(Protocol):
    """What is asked of an environment; a `HostPool` is one."""

    async def tasks(self, indices: Sequence[int]) -> list[Task]:
        """The tasks at these indices."""
        ...

    async def render(
        self, requests: Sequence[tuple[int, Instruction | None]]
    ) -> list[tuple[Message, ...]]:
        """The prompts of (task index, length-budget instruction)."""
        ...


class Listed(Protocol):
    """The filtered tasks of an environment; a `TaskList` of the store is one."""

    @property
    def indices(self) -> Sequence[int]:
        """Positions in the environment's whole list."""
        ...

    @property
    def task_ids(self) -> Sequence[str]:
        """Their ids."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """One group before generation.

    Attributes:
        task: index in the environment's whole list, as its hosts count.
        prompt, prompt_tokens: both empty where `failure` says why there is none.
        host_failed: whether that was a host, which elsewhere may not fail.
    """

    group_id: str
    k: int
    environment: str
    task: int
    task_id: str
    seeds: tuple[int, ...]
    length_budget: int | None = None
    prompt: tuple[Message, ...] = ()
    prompt_tokens: tuple[int, ...] = ()
    failure: str = ""
    host_failed: bool = False

    def rollouts(self) -> list[Rollout]:
        """The group's rollouts, none of them begun."""
        return [
            Rollout(
                id=f"{self.group_id}/{sample}",
                group_id=self.group_id,
                environment=self.environment,
                task=self.task,
                prompt=self.prompt,
                prompt_tokens=self.prompt_tokens,
                seed=seed,
                finish_reason="stop" if self.failure else "",
                failure=self.failure,
            )
            for sample, seed in enumerate(self.seeds)
        ]


@dataclass(frozen=True, slots=True)
class Planner:
    """What prompts depend on besides the assignment.

    Attributes:
        pools, task_lists: by environment label.
        budget: the length budget, or None.
        max_prompt_tokens: a longer prompt fails its group.
    """

    pools: Mapping[str, Rendering]
    task_lists: Mapping[str, Listed]
    chat: ChatFormat
    budget: LengthBudget | None
    node_class: str
    max_prompt_tokens: int

    async def plan(
        self, key: AssignmentKey, assigned: Sequence[GroupAssignment]
    ) -> list[PlannedGroup]:
        """Plan every group, in order.

        Raises:
            RunError: an environment has other tasks than the run was prepared with.
        """
        planned: dict[int, PlannedGroup] = {}
        for label in dict.fromkeys(group.environment for group in assigned):
            own = [group for group in assigned if group.environment == label]
            for group in await self._plan_environment(key, label, own):
                planned[group.k] = group
        return [planned[group.k] for group in assigned]

    async def _plan_environment(
        self, key: AssignmentKey, label: str, assigned: Sequence[GroupAssignment]
    ) -> list[PlannedGroup]:
        pool, listed = self.pools[label], self.task_lists[label]
        groups = [
            PlannedGroup(
                group_id=group.group_id,
                k=group.k,
                environment=label,
                task=listed.indices[group.task],
                task_id=listed.task_ids[group.task],
                seeds=group.seeds,
            )
            for group in assigned
        ]
        tasks = await pool.tasks([group.task for group in groups])
        wishes: list[tuple[int, Instruction | None]] = []
        for position, (group, task) in enumerate(zip(groups, tasks, strict=True)):
            _check_task(group, task)
            target, instruction = self._draw(key, group.k, task)
            groups[position] = replace(group, length_budget=target)
            wishes.append((group.task, instruction))
        prompts = await _render_each(pool, wishes)
        return [
            self._with_prompt(group, prompt) for group, prompt in zip(groups, prompts, strict=True)
        ]

    def _draw(
        self, key: AssignmentKey, k: int, task: Task
    ) -> tuple[int | None, Instruction | None]:
        if self.budget is None:
            return None, None
        rng = group_rng(key, k, "length_budget")
        target = self.budget.draw(rng, task, self.node_class, key.step)
        return target, None if target is None else self.budget.instruction(target)

    def _with_prompt(
        self, group: PlannedGroup, prompt: tuple[Message, ...] | HostError
    ) -> PlannedGroup:
        if isinstance(prompt, HostError):
            logger.error("group %s: no prompt: %s", group.group_id, prompt)
            return replace(group, failure=f"render: {prompt.what}", host_failed=True)
        tokens = self.chat.prompt_tokens(prompt)
        if len(tokens) > self.max_prompt_tokens:
            reason = f"{len(tokens)} prompt tokens are above {self.max_prompt_tokens}"
            logger.error("group %s, task %s: %s", group.group_id, group.task_id, reason)
            return replace(group, failure=reason)
        return replace(group, prompt=prompt, prompt_tokens=tokens)


def _check_task(group: PlannedGroup, task: Task) -> None:
    if task.id != group.task_id:
        raise RunError(
            f"task {group.task} is {task.id!r}, the run was prepared with {group.task_id!r}",
            where=f"environment {group.environment}",
            fix="install the environment's version and data that lock.json names",
        )


async def _render_each(
    pool: Rendering, wishes: Sequence[tuple[int, Instruction | None]]
) -> list[tuple[Message, ...] | HostError]:
    """Render all at once; where that fails, one by one, so that one task can't fail the others."""
    try:
        return list(await pool.render(wishes))
    except HostError:
        found: list[tuple[Message, ...] | HostError] = []
        for wish in wishes:
            try:
                found += await pool.render([wish])
            except HostError as error:
                found.append(error)
        return found
