"""Opens what a calibration needs from a run config: the model, and prompts of its environments.

Called by `prime-core toploc calibrate`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from prime_core.api import RunError
from prime_core.validation.calibration import Calibrator

if TYPE_CHECKING:
    from pathlib import Path

    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.engines.chat import ChatFormat


def calibrator(
    config: RunConfig,
    *,
    sequences: int,
    tokens: int,
    progress: Callable[[str], None],
    engines: tuple[str, ...] = (),
) -> Calibrator:
    """A calibrator of the config's model and engine on prompts of its environments, evenly spread.

    Raises:
        PrimeError: the model, an environment or the chat template can't be had, or no prompt is
            short enough.
    """
    from prime_core.engines.chat import ChatFormat
    from prime_core.engines.model_files import load_tokenizer, local_policy, resolve_model
    from prime_core.hub import Hub, RunContext

    context = RunContext.from_environment()
    model_dir = resolve_model(
        config.model.path, config.model.gguf, context.cache_dir, dtype=config.model.dtype
    )
    chat = ChatFormat(load_tokenizer(model_dir, config.model.chat_template))
    return Calibrator(
        config=config,
        hub=Hub.discover(block=config.plugins.block),
        context=context,
        policy=local_policy(model_dir),
        prompts=asyncio.run(_prompts(config, chat, context.cache_dir, sequences)),
        tokens=min(tokens, config.engine.max_tokens),
        progress=progress,
        engines=engines,
    )


async def _prompts(
    config: RunConfig, chat: ChatFormat, cache_dir: Path, count: int
) -> list[tuple[int, ...]]:
    share = -(-count // len(config.environments))
    found: list[tuple[int, ...]] = []
    for environment in config.environments:
        found += await _environment_prompts(config, environment, chat, cache_dir, share)
    if len(found) < 2:
        raise RunError(
            f"{len(found)} prompts of at most {config.engine.max_prompt_tokens} tokens",
            where="[[environments]]",
            fix="raise [engine] max_prompt_tokens",
        )
    return found[:count]


async def _environment_prompts(
    config: RunConfig, environment: EnvironmentChoice, chat: ChatFormat, cache_dir: Path, count: int
) -> list[tuple[int, ...]]:
    from prime_core.hosting.pool import HostPool

    pool = await HostPool.open(
        environment,
        None,
        config.hosting,
        cache_dir=cache_dir,
        run_dir=None,
        block=config.plugins.block,
    )
    try:
        total = pool.description.task_count
        indices = sorted({index * total // count for index in range(count)})
        rendered = await pool.render([(index, None) for index in indices])
    finally:
        await pool.close()
    prompts = [chat.prompt_tokens(messages) for messages in rendered]
    return [each for each in prompts if len(each) <= config.engine.max_prompt_tokens]
