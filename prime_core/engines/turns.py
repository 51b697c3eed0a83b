"""Plays rollouts through the engine, turn by turn; an environment's words are masked tokens.

Called by workers and evaluation; works on `Rollout`s in place. Batches depend on the rollouts
alone: each round sends those that still run, in order, as one stream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from prime_core.api import (
    Completion,
    EngineError,
    Generation,
    GenerationRequest,
    HostError,
    InferenceEngine,
    Message,
    Reply,
    RunError,
)
from prime_core.engines.answering import answers
from prime_core.engines.chat import ChatFormat
from prime_core.toploc import ProofBuilder

logger = logging.getLogger(__name__)


State: TypeAlias = tuple[int, tuple[Message, ...], tuple[Message, ...], int]


class Answering(Protocol):
    """What is asked of an environment with several turns; a `HostPool` is one."""

    async def reply(self, states: Sequence[State]) -> list[Reply | None]:
        """Replies to states of (task index, prompt, messages since, turn); None ends."""
        ...


class WorkCancelled(Exception):
    """The engine was told to stop: nobody can use this submission any more."""


@dataclass(slots=True)
class Rollout:
    """One rollout while it is played. T is the length of the completion so far.

    Attributes:
        id, group_id: as the engine knows them; an id is unique within one call of `play`.
        environment: its label.
        task: index in the environment's whole list.
        prompt, prompt_tokens: what the model sees first.
        seed: 63-bit sampling seed.
        tokens, mask, logprobs: [T]; mask is False where the environment spoke.
        turn_ends: offsets (exclusive) where the model's turns end.
        messages: everything after the prompt.
        finish_reason: "" while it runs.
        failure: why its environment couldn't go on; "" where all is well.
        commitment: built while it's generated, over all turns; None where none is asked for.
    """

    id: str
    group_id: str
    environment: str
    task: int
    prompt: tuple[Message, ...]
    prompt_tokens: tuple[int, ...]
    seed: int
    tokens: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    turn_ends: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    finish_reason: str = ""
    failure: str = ""
    commitment: ProofBuilder | None = None

    @property
    def model_tokens(self) -> int:
        """Tokens that the model said, over all turns."""
        return sum(self.mask)

    def proofs(self) -> bytes:
        """The commitments of all model tokens so far; none without a builder.

        Raises:
            EngineError: the engine didn't give the row of every token.
        """
        if self.commitment is None:
            return b""
        if self.commitment.rows != self.model_tokens:
            raise EngineError(
                f"{self.commitment.rows} hidden states for {self.model_tokens} tokens",
                where=f"rollout {self.id}",
                fix="use an engine that feeds commitments",
            )
        return self.commitment.finish()

    def completion(self) -> Completion:
        """What a verifier sees."""
        last = next((m.content for m in reversed(self.messages) if m.role == "assistant"), "")
        return Completion(
            text=last,
            messages=tuple(self.messages),
            finish_reason=self.finish_reason,  # type: ignore[arg-type]
            token_count=self.model_tokens,
        )


@dataclass(frozen=True, slots=True)
class Player:
    """What playing depends on.

    Attributes:
        answering: environments with several turns, by label; any other ends with its first.
        max_tokens: limit on model tokens of one rollout, over all turns.
        max_total_tokens: limit on prompt and completion together, environment tokens included.
        commit: build commitments to the hidden states; the engine must feed them.
    """

    engine: InferenceEngine
    chat: ChatFormat
    answering: Mapping[str, Answering]
    temperature: float
    max_tokens: int
    max_total_tokens: int
    max_turns: int
    commit: bool = False

    async def play(
        self,
        rollouts: Sequence[Rollout],
        finished: Callable[[Rollout], None],
        freed: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Play all rollouts to their ends.

        Args:
            finished: called once for each, as soon as its tokens are complete, while others are
                still generated.
            freed: called with how many of them the engine has no more to do for, when a turn ends;
                with a negative number when they come back with their next turn.

        Raises:
            WorkCancelled: the engine's work on one of the groups was cancelled.
            EngineError: the engine failed, answered what it wasn't asked, or can't commit where it
                should.
        """
        running = list(rollouts)
        if self.commit:
            self._begin_commitments(running)
        while running:
            asking = await self._round(running, finished, freed)
            running = await self._replies(asking, finished)
            freed(-len(running))

    def _begin_commitments(self, rollouts: Sequence[Rollout]) -> None:
        capabilities = self.engine.capabilities
        if not capabilities.commitments:
            raise EngineError(
                "it can't commit to its hidden states, and nobody would believe its rollouts",
                where=f"engine {capabilities.name}",
                fix='use the engine transformers, or set [run] trust = "none"',
            )
        for rollout in rollouts:
            rollout.commitment = ProofBuilder()

    async def _round(
        self,
        running: Sequence[Rollout],
        finished: Callable[[Rollout], None],
        freed: Callable[[int], None],
    ) -> list[Rollout]:
        """One turn of each; returns those whose environment may answer, in order."""
        by_id = {rollout.id: rollout for rollout in running}
        asking: set[str] = set()
        requests = [self._request(rollout) for rollout in running]
        async with aclosing(answers(self.engine, requests)) as generations:
            async for generation in generations:
                rollout = by_id[generation.id]
                self._absorb(rollout, generation)
                freed(1)
                if rollout.finish_reason:
                    finished(rollout)
                else:
                    asking.add(rollout.id)
        return [rollout for rollout in running if rollout.id in asking]

    def _room(self, rollout: Rollout) -> int:
        """Model tokens that the rollout may still get."""
        total = len(rollout.prompt_tokens) + len(rollout.tokens)
        return min(self.max_tokens - rollout.model_tokens, self.max_total_tokens - total)

    def _request(self, rollout: Rollout) -> GenerationRequest:
        return GenerationRequest(
            id=rollout.id,
            group_id=rollout.group_id,
            token_ids=(*rollout.prompt_tokens, *rollout.tokens),
            seed=rollout.seed,
            position=rollout.model_tokens,
            max_tokens=self._room(rollout),
            temperature=self.temperature,
            commitment=rollout.commitment,
        )

    def _absorb(self, rollout: Rollout, generation: Generation) -> None:
        if generation.finish_reason == "cancelled":
            raise WorkCancelled(rollout.group_id)
        rollout.tokens += generation.token_ids
        rollout.mask += [True] * len(generation.token_ids)
        # A log-probability of 0 may be rounded to just above it.
        rollout.logprobs += [min(0.0, value) for value in generation.logprobs]
        rollout.turn_ends.append(len(rollout.tokens))
        rollout.messages.append(Message("assistant", self.chat.text(generation.token_ids)))
        if generation.finish_reason == "length" or rollout.environment not in self.answering:
            rollout.finish_reason = generation.finish_reason

    async def _replies(
        self, asking: Sequence[Rollout], finished: Callable[[Rollout], None]
    ) -> list[Rollout]:
        """Let the environments answer; returns the rollouts that go on, in order."""
        going_on: set[str] = set()
        for label in dict.fromkeys(rollout.environment for rollout in asking):
            own = [rollout for rollout in asking if rollout.environment == label]
            states = [
                (one.task, one.prompt, tuple(one.messages), len(one.turn_ends)) for one in own
            ]
            replies = await reply_each(self.answering[label], states)
            for rollout, reply in zip(own, replies, strict=True):
                self._answer(rollout, reply)
                if rollout.finish_reason:
                    finished(rollout)
                else:
                    going_on.add(rollout.id)
        return [rollout for rollout in asking if rollout.id in going_on]

    def _answer(self, rollout: Rollout, reply: Reply | HostError | None) -> None:
        if isinstance(reply, HostError):
            logger.error("rollout %s: no reply: %s", rollout.id, reply)
            rollout.failure, rollout.finish_reason = f"reply: {reply.what}", "stop"
            return
        if reply is None:
            rollout.finish_reason = "stop"
            return
        if len(rollout.turn_ends) >= self.max_turns:
            rollout.finish_reason = "turns"
            return
        history = [*rollout.prompt, *rollout.messages]
        try:
            tokens = self.chat.reply_tokens(history, reply.messages, rollout.tokens[-1])
        except RunError as error:
            logger.error("rollout %s: no reply: %s", rollout.id, error)
            rollout.failure, rollout.finish_reason = f"reply: {error.what}", "stop"
            return
        total = len(rollout.prompt_tokens) + len(rollout.tokens) + len(tokens)
        if rollout.model_tokens >= self.max_tokens or total >= self.max_total_tokens:
            rollout.finish_reason = "length"
            return
        if not tokens:
            rollout.failure, rollout.finish_reason = "reply: it renders to no tokens", "stop"
            return
        rollout.tokens += tokens
        rollout.mask += [False] * len(tokens)
        rollout.logprobs += [0.0] * len(tokens)
        rollout.messages += reply.messages


async def reply_each(pool: Answering, states: Sequence[State]) -> list[Reply | HostError | None]:
    """Ask for all at once; where that fails, one by one, so that one can't fail the others."""
    if not states:
        return []
    try:
        return list(await pool.reply(states))
    except HostError:
        found: list[Reply | HostError | None] = []
        for state in states:
            try:
                found += await pool.reply([state])
            except HostError as error:
                found.append(error)
        return found
