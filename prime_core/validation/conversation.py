"""Rebuilds what was said from a row's tokens, asking the environment for its part again.

Called before a row is scored again. The model's turns are decoded from its tokens; the
environment's must be exactly what it answers to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from prime_core.api import (
    Completion,
    HostError,
    Message,
    Reply,
    RolloutView,
    RunError,
)
from prime_core.engines.turns import reply_each

if TYPE_CHECKING:
    from prime_core.api.types import FinishReason
    from prime_core.engines.chat import ChatFormat
    from prime_core.hosting.pool import HostPool

UNANSWERED = "ends where the environment would have answered"
CUT = "is cut off: no end token, and room to go on"


@dataclass(slots=True)
class Conversation:
    """One row's conversation while it is rebuilt.

    Attributes:
        task: index in the environment's whole list.
        prompt: what the model saw first.
        messages: everything after it.
        mismatch: how the row differs from what the environment would have made; "" so far.
        failure: why the environment couldn't answer; "" where all is well.
    """

    row: RolloutView
    task: int
    prompt: tuple[Message, ...]
    messages: list[Message] = field(default_factory=list)
    mismatch: str = ""
    failure: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether there may be more to rebuild."""
        return not (self.mismatch or self.failure)

    def turn(self, index: int) -> tuple[int, int, int]:
        """(start, where the model begins, end) of a turn; the environment speaks before it."""
        ends = self.row.turn_ends
        start, end = (ends[index - 1] if index else 0), ends[index]
        spoken = start
        while not self.row.completion_mask[spoken]:
            spoken += 1
        return start, spoken, end

    def completion(self) -> Completion:
        """What a verifier sees."""
        last = next((m.content for m in reversed(self.messages) if m.role == "assistant"), "")
        return Completion(
            text=last,
            messages=tuple(self.messages),
            finish_reason=cast("FinishReason", self.row.finish_reason),
            token_count=self.row.length,
        )


@dataclass(frozen=True, slots=True)
class Endings:
    """What decides how a rollout ends, as it does where rollouts are played.

    Attributes:
        stop_ids: every EOS token.
        max_prompt_tokens: a rollout's total limit is this and its own token limit.
    """

    stop_ids: frozenset[int]
    max_prompt_tokens: int
    max_turns: int

    def stopped(self, one: Conversation, index: int) -> bool:
        """Whether the model ended a turn itself."""
        return one.row.completion_tokens[one.row.turn_ends[index] - 1] in self.stop_ids

    def cut(self, one: Conversation) -> str:
        """How a rollout ends whose last turn nothing ended; "" where it had room to go on."""
        return "length" if self._is_full(one.row, 0) else ""

    def _is_full(self, row: RolloutView, more: int) -> bool:
        total = len(row.prompt_tokens) + len(row.completion_tokens) + more
        return row.length >= row.max_tokens or total >= self.max_prompt_tokens + row.max_tokens

    def reason(self, one: Conversation, reply_tokens: int | None) -> str:
        """How a rollout ends whose last turn the model ended; "" where it would go on.

        Args:
            reply_tokens: tokens of the environment's answer; None where it has none.
        """
        row = one.row
        if reply_tokens is None:
            return "stop"
        if self.ends_by_turns(one):
            return "turns"
        return "length" if self._is_full(row, reply_tokens) else ""

    def ends_by_turns(self, one: Conversation) -> bool:
        """Whether no turn may follow the last, whatever the environment answers."""
        return len(one.row.turn_ends) >= self.max_turns


async def rebuild(
    conversations: Sequence[Conversation], chat: ChatFormat, pool: HostPool, endings: Endings
) -> None:
    """Rebuild all, turn by turn; each ends whole, or with a mismatch or a failure."""
    turns = max((len(one.row.turn_ends) for one in conversations), default=0)
    for index in range(turns):
        speaking = [one for one in conversations if one.goes_on and index < len(one.row.turn_ends)]
        for one in speaking:
            _, spoken, end = one.turn(index)
            text = chat.text(one.row.completion_tokens[spoken:end])
            one.messages.append(Message("assistant", text))
        if pool.description.multi_turn:
            await _answer(speaking, index, chat, pool, endings)
        else:
            for one in speaking:
                if len(one.row.turn_ends) > 1:
                    one.mismatch = "several turns, though the environment never answers"
                else:
                    _check_alone(one, endings)


def _check_alone(one: Conversation, endings: Endings) -> None:
    """The end of a rollout in an environment that never answers."""
    if endings.stopped(one, 0):
        _check_end(one, endings.reason(one, None))
    else:
        _check_end(one, endings.cut(one), CUT)


async def _answer(
    speaking: Sequence[Conversation],
    index: int,
    chat: ChatFormat,
    pool: HostPool,
    endings: Endings,
) -> None:
    """Hold what follows a turn against the environment's answer to it."""
    # a turn that met the token limit was never shown to the environment, and is the last
    asking = [one for one in speaking if endings.stopped(one, index)]
    for one in speaking:
        if not endings.stopped(one, index):
            if index + 1 == len(one.row.turn_ends):
                _check_end(one, endings.cut(one), CUT)
            else:
                one.mismatch = f"goes on after turn {index}, which no end token ends"
    states = [(one.task, one.prompt, tuple(one.messages), index + 1) for one in asking]
    for one, reply in zip(asking, await reply_each(pool, states), strict=True):
        last = index + 1 == len(one.row.turn_ends)
        if isinstance(reply, HostError):
            one.failure = f"reply: {reply.what}"
        elif not last and reply is None:
            one.mismatch = f"goes on after turn {index}, which ends it"
        elif last:
            _check_last(one, reply, chat, endings)
        elif reply is not None:
            _compare(one, reply, index, chat)


def _check_last(one: Conversation, reply: Reply | None, chat: ChatFormat, endings: Endings) -> None:
    if reply is None:
        _check_end(one, endings.reason(one, None))
        return
    if endings.ends_by_turns(one):
        _check_end(one, "turns")  # nobody asks how the answer would read
        return
    tokens = _reply_tokens(one, reply, one.row.completion_tokens[-1], chat)
    if tokens is not None:
        _check_end(one, endings.reason(one, len(tokens)))


def _check_end(one: Conversation, expected: str, otherwise: str = UNANSWERED) -> None:
    """A rollout of status error may have been cut by a host of the node's that failed."""
    if one.row.score_status == "error" or one.row.finish_reason == expected:
        return
    if expected:
        one.mismatch = f"says {one.row.finish_reason}, it ends by {expected}"
    else:
        one.mismatch = otherwise


def _reply_tokens(
    one: Conversation, reply: Reply, last_token: int, chat: ChatFormat
) -> tuple[int, ...] | None:
    try:
        return chat.reply_tokens([*one.prompt, *one.messages], reply.messages, last_token)
    except RunError as error:
        one.failure = f"reply: {error.what}"
        return None


def _compare(one: Conversation, reply: Reply, index: int, chat: ChatFormat) -> None:
    start, spoken, _ = one.turn(index + 1)
    expected = _reply_tokens(one, reply, one.row.completion_tokens[start - 1], chat)
    if expected is None:
        return
    if list(expected) != list(one.row.completion_tokens[start:spoken]):
        one.mismatch = f"the environment's words after turn {index} aren't its own"
    one.messages += reply.messages
