"""Opens what a submission is made with: environment hosts, task lists, planner, player.

Called by `setup` once a worker. The producer depends on the config and the run's files alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.assignment import EnvironmentShare
from prime_core.engines.planning import Planner
from prime_core.rollout.produce import Producer
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.records import TaskList
from prime_core.store.trace import Trace

if TYPE_CHECKING:
    from prime_core.api import InferenceEngine, LengthBudget
    from prime_core.config.sections import RunConfig
    from prime_core.hosting.pool import HostPool


async def open_pools(
    config: RunConfig, cache_dir: Path, stack: AsyncExitStack
) -> dict[str, HostPool]:
    """Hosts of every environment, by label; `stack` closes them.

    Raises:
        PrimeError: an environment can't start.
    """
    from prime_core.hosting.pool import HostPool

    pools: dict[str, HostPool] = {}
    for environment in config.environments:
        pool = await HostPool.open(
            environment,
            config.reward,
            config.hosting,
            cache_dir=cache_dir,
            run_dir=config.run.dir,
            block=config.plugins.block,
        )
        stack.push_async_callback(pool.close)
        pools[environment.label] = pool
    return pools


def read_tasks(store: ObjectStore, label: str) -> TaskList:
    """The filtered tasks of an environment, as the run was prepared with them."""
    path = layout.tasks_path(label)
    return TaskList.from_json(store.get(path), where=path)


def make_producer(
    config: RunConfig,
    node: str,
    engine: InferenceEngine,
    pools: Mapping[str, HostPool],
    lists: Mapping[str, TaskList],
    budget: LengthBudget | None,
    trace: Trace,
) -> Producer:
    """What turns a dispatch of this node into rows."""
    from prime_core.engines.chat import ChatFormat
    from prime_core.engines.model_files import load_tokenizer
    from prime_core.engines.turns import Player

    settings = config.engine
    node_class = config.node_class(node)
    limit = settings.token_limit(node_class)
    model_dir = config.run.dir / layout.MODEL
    chat = ChatFormat(load_tokenizer(model_dir, config.model.chat_template))
    planner = Planner(
        pools=pools,
        task_lists=lists,
        chat=chat,
        budget=budget,
        node_class=node_class,
        max_prompt_tokens=settings.max_prompt_tokens,
    )
    player = Player(
        engine=engine,
        chat=chat,
        answering={label: pool for label, pool in pools.items() if pool.description.multi_turn},
        temperature=settings.temperature,
        max_tokens=limit,
        max_total_tokens=settings.max_prompt_tokens + limit,
        max_turns=settings.max_turns,
        commit=config.run.trust != "none",
    )
    shares = [
        EnvironmentShare(each.label, each.weight, len(lists[each.label].indices))
        for each in config.environments
    ]
    return Producer(shares, planner, player, pools, trace)
