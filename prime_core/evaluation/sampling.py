"""Samples completions of an environment's tasks with one policy, and scores them.

Called by `evaluate` and by the workers of `work`. Seeds depend on (seed, environment, task, sample)
alone, so that an evaluation can be repeated, and continued, task by task.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prime_core.api import EngineError, Message, Score, Task, Usage
from prime_core.engines.turns import Player, Rollout
from prime_core.evaluation.dialogue import Spoken, Talker
from prime_core.evaluation.judged import Judged

if TYPE_CHECKING:
    from prime_core.api import InferenceEngine, Instruction
    from prime_core.config.sections import RunConfig
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
    """An engine, and the chat format of its model where the engine takes tokens."""

    def __init__(self, config: RunConfig, engine: InferenceEngine, chat: ChatFormat | None) -> None:
        self._config, self._engine, self._chat = config, engine, chat

    async def sample(
        self, pool: HostPool, indices: Sequence[int], sampling: Sampling
    ) -> AsyncIterator[Sampled]:
        """Sample and score tasks, in order of `indices`.

        Raises:
            PrimeError: the engine or the environment fails.
        """
        each = max(1, CHUNK_ROLLOUTS // sampling.samples)
        for start in range(0, len(indices), each):
            items = [
                (index, sample)
                for index in indices[start : start + each]
                for sample in range(sampling.samples)
            ]
            found = await self.play(pool, items, sampling, None)
            for first in range(0, len(items), sampling.samples):
                yield _sampled(found[first : first + sampling.samples])

    async def play(
        self,
        pool: HostPool,
        items: Sequence[tuple[int, int]],
        sampling: Sampling,
        instruction: Instruction | None,
    ) -> list[Judged | str]:
        """Sample and score one completion for each (task index, sample), in order.

        A prompt longer than [engine] max_prompt_tokens and an environment that fails in mid-rollout
        give the status error. Text instead of a verdict says why an endpoint gave an item up,
        which another time it may not.

        Raises:
            PrimeError: the engine or the environment fails.
        """
        indices = list(dict.fromkeys(index for index, _ in items))
        tasks = dict(zip(indices, await pool.tasks(indices), strict=True))
        rendered = await pool.render([(index, instruction) for index in indices])
        prompts = dict(zip(indices, rendered, strict=True))
        label = pool.description.label
        drawn = [
            Drawn(
                index,
                sample,
                tasks[index],
                prompts[index],
                sampling_seed(sampling.seed, label, tasks[index].id, sample),
            )
            for index, sample in items
        ]
        if self._chat is None:
            spoken = await self._talk(pool, drawn, sampling.temperature)
        else:
            spoken = await self._play_tokens(pool, drawn, sampling.temperature, self._chat)
        return await _judge(pool, drawn, spoken)

    async def _talk(
        self, pool: HostPool, drawn: Sequence[Drawn], temperature: float
    ) -> list[Spoken]:
        settings = self._config.engine
        talker = Talker(
            engine=self._engine,
            answering=pool if pool.description.multi_turn else None,
            temperature=temperature,
            max_tokens=settings.token_limit(settings.node_class),
            max_turns=settings.max_turns,
        )
        return await asyncio.gather(
            *(
                talker.play(f"{one.index}/{one.sample}", one.index, one.prompt, one.seed)
                for one in drawn
            )
        )

    async def _play_tokens(
        self, pool: HostPool, drawn: Sequence[Drawn], temperature: float, chat: ChatFormat
    ) -> list[Spoken]:
        settings = self._config.engine
        limit, label = settings.token_limit(settings.node_class), pool.description.label
        player = Player(
            engine=self._engine,
            chat=chat,
            answering={label: pool} if pool.description.multi_turn else {},
            temperature=temperature,
            max_tokens=limit,
            max_total_tokens=settings.max_prompt_tokens + limit,
            max_turns=settings.max_turns,
        )
        tokens = {one.index: chat.prompt_tokens(one.prompt) for one in drawn}
        rollouts = [
            Rollout(
                id=f"{one.index}/{one.sample}",
                group_id=str(one.index),
                environment=label,
                task=one.index,
                prompt=one.prompt,
                prompt_tokens=tokens[one.index],
                seed=one.seed,
            )
            for one in drawn
        ]
        most = settings.max_prompt_tokens
        await player.play([one for one in rollouts if len(one.prompt_tokens) <= most], _nothing)
        return [_spoken(rollout, most) for rollout in rollouts]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One completion that is to be sampled."""

    index: int
    sample: int
    task: Task
    prompt: tuple[Message, ...]
    seed: int


def sampling_seed(seed: int, label: str, task_id: str, sample: int) -> int:
    """A 63-bit sampling seed."""
    text = f"prime-core/evaluation/1\0{seed}\0{label}\0{task_id}\0{sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def spread(count: int, wanted: int | None) -> list[int]:
    """`wanted` of `count` indices (all of them for None), evenly spread, the same every time."""
    if wanted is None or wanted >= count:
        return list(range(count))
    return [position * count // wanted for position in range(wanted)]


async def _judge(
    pool: HostPool, drawn: Sequence[Drawn], spoken: Sequence[Spoken]
) -> list[Judged | str]:
    pairs = list(zip(drawn, spoken, strict=True))
    whole = [(one.index, said.completion()) for one, said in pairs if _is_whole(said)]
    scores = iter(await pool.score(whole))
    found: list[Judged | str] = []
    for one, said in pairs:
        if said.retry:
            found.append(said.retry)
            continue
        lost = Score(None, "error", evidence={"kind": "rollout", "detail": said.failure})
        found.append(
            Judged(
                index=one.index,
                task=one.task.id,
                sample=one.sample,
                score=next(scores) if _is_whole(said) else lost,
                text=said.completion().text,
                messages=tuple(said.messages) if pool.description.multi_turn else (),
                finish_reason=said.finish_reason,
                tokens=said.usage.completion_tokens,
                prompt_tokens=said.usage.prompt_tokens,
                cost=said.usage.cost,
            )
        )
    return found


def _is_whole(said: Spoken) -> bool:
    return not said.failure and not said.retry


def _spoken(rollout: Rollout, most: int) -> Spoken:
    """A rollout of tokens as text; one that wasn't played says why."""
    length = len(rollout.prompt_tokens)
    too_long = f"the prompt has {length} tokens, above [engine] max_prompt_tokens {most}"
    return Spoken(
        messages=list(rollout.messages),
        finish_reason=rollout.finish_reason or "stop",
        usage=Usage(length, rollout.model_tokens),
        failure=rollout.failure or ("" if length <= most else too_long),
    )


def _nothing(rollout: Rollout) -> None:
    """Nobody waits for single rollouts."""


def _sampled(found: Sequence[Judged | str]) -> Sampled:
    whole = [one for one in found if isinstance(one, Judged)]
    if len(whole) < len(found):
        raise EngineError(
            f"an endpoint gave up: {next(one for one in found if isinstance(one, str))}",
            where="[engine]",
            fix="try again later",
        )
    return Sampled(
        task_id=whole[0].task,
        scores=tuple(one.score for one in whole),
        lengths=tuple(one.tokens for one in whole),
        truncated=tuple(one.finish_reason == "length" for one in whole),
    )
