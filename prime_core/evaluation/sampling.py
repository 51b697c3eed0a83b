"""Samples completions of an environment's tasks with one policy, and scores them.

Called by `evaluate` and `profiles`. Seeds depend on (seed, environment, task, sample) alone, so
that an evaluation can be repeated, and continued, task by task.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import RunError, Score, Task
from prime_core.engines.turns import Player, Rollout

if TYPE_CHECKING:
    from prime_core.api import InferenceEngine, PolicyFiles
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.engines.chat import ChatFormat
    from prime_core.hosting.pool import HostPool

CHUNK_ROLLOUTS = 128  # sampled together; what an interruption may lose


@dataclass(frozen=True, slots=True)
class Sampled:
    """One task's completions, judged.

    Attributes:
        scores, lengths, truncated: parallel, one entry a completion; lengths in model tokens.
    """

    task_id: str
    scores: tuple[Score, ...]
    lengths: tuple[int, ...]
    truncated: tuple[bool, ...]

    @property
    def values(self) -> list[float]:
        """Values of the scored completions."""
        return [score.value for score in self.scores if score.value is not None]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are sampled; temperature 0 is greedy, and then one sample says it all."""

    samples: int
    temperature: float
    seed: int = 0


class Sampler:
    """An engine with a policy loaded, and the chat format of its model."""

    def __init__(self, config: RunConfig, engine: InferenceEngine, chat: ChatFormat) -> None:
        self._config, self._engine, self._chat = config, engine, chat

    async def sample(
        self, pool: HostPool, indices: Sequence[int], sampling: Sampling
    ) -> AsyncIterator[Sampled]:
        """Sample and score tasks, in order of `indices`.

        Raises:
            RunError: a prompt is longer than [engine] max_prompt_tokens.
            PrimeError: the engine or the environment fails.
        """
        player = self._player(pool, sampling.temperature)
        each = max(1, CHUNK_ROLLOUTS // sampling.samples)
        for start in range(0, len(indices), each):
            chunk = indices[start : start + each]
            tasks = await pool.tasks(chunk)
            prompts = await pool.render([(index, None) for index in chunk])
            groups = []
            for index, task, prompt in zip(chunk, tasks, prompts, strict=True):
                tokens = self._chat.prompt_tokens(prompt)
                self._check_length(len(tokens), task)
                label = pool.description.label
                groups.append(
                    [
                        Rollout(
                            id=f"{index}/{sample}",
                            group_id=str(index),
                            environment=label,
                            task=index,
                            prompt=prompt,
                            prompt_tokens=tokens,
                            seed=sampling_seed(sampling.seed, label, task.id, sample),
                        )
                        for sample in range(sampling.samples)
                    ]
                )
            await player.play([one for group in groups for one in group], lambda _: None)
            for task, rollouts in zip(tasks, await _score(pool, groups), strict=True):
                yield _sampled(task, *rollouts)

    def _player(self, pool: HostPool, temperature: float) -> Player:
        settings = self._config.engine
        limit = settings.token_limit(settings.node_class)
        label = pool.description.label
        return Player(
            engine=self._engine,
            chat=self._chat,
            answering={label: pool} if pool.description.multi_turn else {},
            temperature=temperature,
            max_tokens=limit,
            max_total_tokens=settings.max_prompt_tokens + limit,
            max_turns=settings.max_turns,
        )

    def _check_length(self, tokens: int, task: Task) -> None:
        limit = self._config.engine.max_prompt_tokens
        if tokens > limit:
            raise RunError(
                f"the prompt has {tokens} tokens, above {limit}",
                where=f"task {task.id}",
                fix="raise [engine] max_prompt_tokens",
            )


def sampling_seed(seed: int, label: str, task_id: str, sample: int) -> int:
    """A 63-bit sampling seed."""
    text = f"prime-core/evaluation/1\0{seed}\0{label}\0{task_id}\0{sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def spread(count: int, wanted: int | None) -> list[int]:
    """`wanted` of `count` indices (all of them for None), evenly spread, the same every time."""
    if wanted is None or wanted >= count:
        return list(range(count))
    return [position * count // wanted for position in range(wanted)]


async def open_sampler(
    config: RunConfig, policy: PolicyFiles, stack: AsyncExitStack, *, run_dir: Path | None
) -> Sampler:
    """Load a policy into the configured engine; `stack` closes it."""
    from prime_core.engines import open_engine
    from prime_core.engines.chat import ChatFormat
    from prime_core.engines.model_files import load_tokenizer
    from prime_core.hub import Hub, RunContext

    chat = ChatFormat(load_tokenizer(policy.model_dir, config.model.chat_template))
    hub = Hub.discover(block=config.plugins.block)
    engine = open_engine(config, hub, RunContext.from_environment(run_dir))
    stack.callback(engine.close)
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
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import RunContext

    pool = await HostPool.open(
        environment,
        None,
        config.hosting,
        cache_dir=RunContext.from_environment(run_dir).cache_dir,
        run_dir=run_dir,
        block=config.plugins.block,
    )
    stack.push_async_callback(pool.close)
    return pool


async def _score(
    pool: HostPool, groups: Sequence[Sequence[Rollout]]
) -> list[tuple[list[Rollout], list[Score]]]:
    flat = [rollout for group in groups for rollout in group]
    whole = [rollout for rollout in flat if not rollout.failure]
    found = await pool.score([(rollout.task, rollout.completion()) for rollout in whole])
    scores = {rollout.id: score for rollout, score in zip(whole, found, strict=True)}
    lost = Score(None, "error", evidence={"kind": "rollout"})
    return [(list(group), [scores.get(rollout.id, lost) for rollout in group]) for group in groups]


def _sampled(task: Task, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Sampled:
    return Sampled(
        task_id=task.id,
        scores=tuple(scores),
        lengths=tuple(rollout.model_tokens for rollout in rollouts),
        truncated=tuple(rollout.finish_reason == "length" for rollout in rollouts),
    )
