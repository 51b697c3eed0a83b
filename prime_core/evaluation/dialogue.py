"""Plays rollouts with an engine that speaks text: messages in, messages out, no tokens.

The counterpart of `prime_core.engines.turns` for models behind endpoints. Each rollout is played by
itself, so that a slow answer holds up nobody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from prime_core.api import (
    Completion,
    EngineError,
    Generation,
    GenerationRequest,
    HostError,
    InferenceEngine,
    Message,
    Usage,
)
from prime_core.engines.turns import Answering


@dataclass(slots=True)
class Spoken:
    """One rollout of text.

    Attributes:
        messages: everything after the prompt.
        usage: summed over turns, as the server counts.
        failure: why the environment couldn't go on; "" where all is well.
        retry: why the endpoint gave it up, which another time it may not; "" where all is well.
    """

    messages: list[Message] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    failure: str = ""
    retry: str = ""

    def completion(self) -> Completion:
        """What a verifier sees."""
        last = next((m.content for m in reversed(self.messages) if m.role == "assistant"), "")
        return Completion(
            text=last,
            messages=tuple(self.messages),
            finish_reason=self.finish_reason,  # type: ignore[arg-type]
            token_count=self.usage.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Talker:
    """What playing depends on.

    Attributes:
        answering: the environment where it has several turns, else None.
        max_tokens: limit on the model's tokens over all turns, by the server's own count.
    """

    engine: InferenceEngine
    answering: Answering | None
    temperature: float
    max_tokens: int
    max_turns: int

    async def play(self, name: str, task: int, prompt: tuple[Message, ...], seed: int) -> Spoken:
        """Play one rollout to its end.

        Raises:
            EngineError: no request of this engine can succeed.
        """
        spoken = Spoken()
        turn = 0
        while not spoken.finish_reason:
            turn += 1
            found = await self._say(f"{name}/{turn}", prompt, spoken, seed)
            if found.failure:
                spoken.retry, spoken.finish_reason = found.failure, "stop"
                break
            spoken.usage = _sum(spoken.usage, found.usage or Usage())
            spoken.messages.append(Message("assistant", found.text))
            if found.finish_reason == "length" or self.answering is None:
                spoken.finish_reason = found.finish_reason
            else:
                await self._answer(spoken, task, prompt, turn)
        return spoken

    async def _say(
        self, name: str, prompt: tuple[Message, ...], spoken: Spoken, seed: int
    ) -> Generation:
        request = GenerationRequest(
            id=name,
            group_id=name,
            token_ids=(),
            seed=seed,
            position=spoken.usage.completion_tokens,
            max_tokens=self.max_tokens - spoken.usage.completion_tokens,
            temperature=self.temperature,
            messages=(*prompt, *spoken.messages),
        )

        async def stream() -> AsyncIterator[GenerationRequest]:
            yield request

        found = [generation async for generation in self.engine.generate(stream())]
        if len(found) != 1:
            raise EngineError(
                f"the engine answered one request {len(found)} times",
                where=f"engine {self.engine.capabilities.name}",
                fix="report this as a bug of the engine",
            )
        return found[0]

    async def _answer(
        self, spoken: Spoken, task: int, prompt: tuple[Message, ...], turn: int
    ) -> None:
        assert self.answering is not None
        state = (task, prompt, tuple(spoken.messages), turn)
        try:
            reply = (await self.answering.reply([state]))[0]
        except HostError as error:
            spoken.failure, spoken.finish_reason = f"reply: {error.what}", "stop"
            return
        if reply is None:
            spoken.finish_reason = "stop"
        elif turn >= self.max_turns:
            spoken.finish_reason = "turns"
        elif spoken.usage.completion_tokens >= self.max_tokens:
            spoken.finish_reason = "length"
        else:
            spoken.messages += reply.messages


def _sum(left: Usage, right: Usage) -> Usage:
    return Usage(
        left.prompt_tokens + right.prompt_tokens,
        left.completion_tokens + right.completion_tokens,
        left.cost + right.cost,
    )
