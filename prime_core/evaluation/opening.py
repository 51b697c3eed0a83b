"""Opens what evaluation works with: an engine with its policy, and hosts of an environment.

Called by `evaluate`, `work` and the commands' drivers; what is opened is closed by the caller's
exit stack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import RunError
from prime_core.evaluation.sampling import Sampler

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.config.sections import EnvironmentChoice, HostingSection, RunConfig
    from prime_core.hosting.pool import HostPool


async def open_sampler(
    config: RunConfig, policy: PolicyFiles | None, stack: AsyncExitStack, *, run_dir: Path | None
) -> Sampler:
    """Load a policy into the configured engine; `stack` closes it.

    Args:
        policy: None for an engine that has weights of its own.

    Raises:
        RunError: the engine takes tokens, and there is no policy.
        PrimeError: the engine can't be made or can't load.
    """
    from prime_core.engines import open_engine
    from prime_core.engines.chat import ChatFormat
    from prime_core.engines.model_files import load_tokenizer
    from prime_core.hub import Hub, RunContext

    hub = Hub.discover(block=config.plugins.block)
    engine = open_engine(config, hub, RunContext.from_environment(run_dir))
    stack.callback(engine.close)
    if not engine.capabilities.token_ids:
        return Sampler(config, engine, None)
    if policy is None:
        raise RunError(
            f"the engine {engine.capabilities.name} needs a policy to load",
            where="[engine]",
            fix="name a model directory",
        )
    chat = ChatFormat(load_tokenizer(policy.model_dir, config.model.chat_template))
    await asyncio.to_thread(engine.load, policy)
    return Sampler(config, engine, chat)


async def open_pool(
    config: RunConfig,
    environment: EnvironmentChoice,
    stack: AsyncExitStack,
    *,
    run_dir: Path | None,
) -> HostPool:
    """Hosts of an environment without a reward; `stack` closes them."""
    return await open_hosts(
        environment, config.hosting, config.plugins.block, stack, run_dir=run_dir
    )


async def open_hosts(
    environment: EnvironmentChoice,
    hosting: HostingSection,
    block: Sequence[str],
    stack: AsyncExitStack,
    *,
    run_dir: Path | None,
) -> HostPool:
    """As `open_pool`, where there is no whole run config."""
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import RunContext

    pool = await HostPool.open(
        environment,
        None,
        hosting,
        cache_dir=RunContext.from_environment(run_dir).cache_dir,
        run_dir=run_dir,
        block=block,
    )
    stack.push_async_callback(pool.close)
    return pool
