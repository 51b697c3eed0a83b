"""The filtered task list of one environment, which a run's preparation writes.

Invariant: a task is listed if every offline filter keeps it and its gold answer can be judged by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.api.protocols import TaskFilter
from prime_core.api.types import Task, TaskProfile
from prime_core.hosting.golds import TASKS_A_CALL, held_out, usable_golds
from prime_core.run.placing import DIGEST
from prime_core.store.layout import MODEL

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.hosting.description import HostedPlugin
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import Hub, RunContext
    from prime_core.store.records import TaskList


@dataclass(frozen=True)
class Filtered:
    """What the offline filters left of an environment's tasks.

    Attributes:
        kept: (index, task id) pairs, ascending.
        dropped: reasons and how many tasks each took.
    """

    kept: tuple[tuple[int, str], ...]
    dropped: Counter[str]


def apply_filters(
    tasks: Sequence[tuple[int, Task]],
    filters: Sequence[tuple[str, TaskFilter]],
    profile: dict[str, TaskProfile],
) -> Filtered:
    """Ask every filter, in the config's order, about every task; the first refusal counts."""
    kept: list[tuple[int, str]] = []
    dropped: Counter[str] = Counter()
    for index, task in tasks:
        for name, task_filter in filters:
            decision = task_filter.keep_task(task, profile.get(task.id))
            if not decision.keep:
                dropped[f"{name}: {decision.reason}"] += 1
                break
        else:
            kept.append((index, task.id))
    return Filtered(tuple(kept), dropped)


async def list_tasks(
    config: RunConfig, environment: EnvironmentChoice, hub: Hub, context: RunContext
) -> tuple[TaskList, dict[str, str], Sequence[HostedPlugin]]:
    """The environment's filtered task list, the distributions of its interpreter, its plugins.

    Raises:
        RunError: nothing is left.
        PrimeError: the environment or a filter fails.
    """
    from prime_core.hosting.pool import HostPool
    from prime_core.store.records import TaskList

    pool = await HostPool.open(
        environment,
        config.reward,
        config.hosting,
        cache_dir=context.cache_dir,
        run_dir=context.run_dir,
        block=config.plugins.block,
    )
    try:
        described = pool.description
        for note in described.notes:
            print(f"{environment.label}: {note}")  # noqa: T201
        tasks = [pair async for pair in _all_tasks(pool, described.task_count)]
        filters = _task_filters(config, hub, context)
        found = apply_filters(tasks, filters, _profile(config, environment))
        for reason, count in found.dropped.most_common():
            print(f"{environment.label}: {count} tasks dropped by {reason}")  # noqa: T201
        kept = await usable_golds(pool, environment, found.kept)
    finally:
        await pool.close()
    if not kept:
        raise RunError(
            f"no task of environment {environment.label} is left",
            where=f"environments, {environment.label}",
            fix="widen the offline filters, or profile the environment with the model of this run",
        )
    listed = TaskList.build(
        environment.label,
        described.info.dataset_digest,
        described.task_count,
        [index for index, _ in kept],
        [task_id for _, task_id in kept],
        described.info.score_range,
    )
    return listed, dict(described.distributions), described.plugins


async def check_held_out(
    config: RunConfig, environment: EnvironmentChoice, context: RunContext
) -> None:
    """Say now, and not at the first evaluation, which held-out gold answers can't be judged by.

    Raises:
        RunError: some can't, and the environment's `bad_golds` is refuse; or none can.
        PrimeError: the environment fails.
    """
    from prime_core.evaluation.sampling import spread
    from prime_core.hosting.pool import HostPool

    pool = await HostPool.open(
        environment,
        None,
        config.hosting,
        cache_dir=context.cache_dir,
        run_dir=context.run_dir,
        block=config.plugins.block,
    )
    try:
        indices = spread(pool.description.task_count, config.eval.tasks)
        await held_out(pool, environment, indices)
    finally:
        await pool.close()


async def _all_tasks(pool: HostPool, count: int) -> Any:
    for first in range(0, count, TASKS_A_CALL):
        indices = range(first, min(first + TASKS_A_CALL, count))
        for index, task in zip(indices, await pool.tasks(indices), strict=True):
            yield index, task


def _task_filters(config: RunConfig, hub: Hub, context: RunContext) -> list[tuple[str, TaskFilter]]:
    filters = []
    for choice in config.filters.offline:
        made = hub.make("data_filter", choice, context)
        if not isinstance(made, TaskFilter):
            raise RunError(
                f"data filter {choice.use} has no keep_task: it filters groups, not tasks",
                where="filters.offline",
                fix="move it to [[filters.online]]",
            )
        filters.append((choice.use, made))
    return filters


def _profile(config: RunConfig, environment: EnvironmentChoice) -> dict[str, TaskProfile]:
    """Profiles by task id, where the config names a directory of them."""
    if config.filters.profiles is None:
        return {}
    from prime_core.evaluation.profiles import read_profile

    digest = (config.run.dir / MODEL / DIGEST).read_text().strip()
    return read_profile(config.filters.profiles, environment.label, digest)
