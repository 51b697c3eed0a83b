"""Rollouts of several turns: tokens in, tokens out, the environment's words masked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prime_core.api import HostError, Message, PrefillRequest, Reply
from prime_core.engines.chat import ChatFormat
from prime_core.engines.model_files import load_tokenizer
from prime_core.engines.turns import Player, Rollout, State, WorkCancelled

Answer = Callable[[State], Reply | None]


class Answers:
    """An environment that answers as a function says."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.calls: list[list[State]] = []

    async def reply(self, states: Sequence[State]) -> list[Reply | None]:
        self.calls.append(list(states))
        return [self.answer(state) for state in states]


@pytest.fixture(scope="module")
def chat(model_dirs: dict[str, Path]) -> ChatFormat:
    return ChatFormat(load_tokenizer(model_dirs["tied"]))


def make_rollouts(chat: ChatFormat, count: int = 6) -> list[Rollout]:
    rollouts = []
    for index in range(count):
        prompt = (Message("user", "say " + "xyz"[: index % 3 + 1]),)
        tokens = chat.prompt_tokens(prompt)
        rollouts.append(Rollout(str(index), f"g{index}", "toy", index, prompt, tokens, 100 + index))
    return rollouts


def play(
    engine: Any, chat: ChatFormat, answers: Answers | None, rollouts: list[Rollout], **limits: Any
) -> list[str]:
    defaults = {"max_tokens": 400, "max_total_tokens": 900, "max_turns": 3}
    player = Player(
        engine=engine,
        chat=chat,
        answering={} if answers is None else {"toy": answers},
        temperature=1.0,
        **{**defaults, **limits},
    )
    done: list[str] = []
    asyncio.run(player.play(rollouts, lambda rollout: done.append(rollout.id)))
    assert sorted(done) == sorted(rollout.id for rollout in rollouts)
    return done


def again(state: State) -> Reply | None:
    return Reply((Message("user", "again"),)) if state[3] < 2 else None


def test_two_turns_are_one_sequence_with_the_environment_masked(
    make_engine: Any, chat: ChatFormat
) -> None:
    engine = make_engine(batch_size=4)
    rollouts = make_rollouts(chat)
    answers = Answers(again)
    play(engine, chat, answers, rollouts)
    two_turns = [rollout for rollout in rollouts if len(rollout.turn_ends) == 2]
    assert len(two_turns) >= 4
    for rollout in two_turns:
        assert rollout.finish_reason in {"stop", "length"}
        roles = [message.role for message in rollout.messages]
        assert roles == ["assistant", "user", "assistant"]
        assert rollout.completion().text == rollout.messages[-1].content
        first, second = rollout.turn_ends
        assert all(rollout.mask[:first])
        gap = rollout.mask.index(False)
        assert gap == first
        assert second == len(rollout.tokens)
        prefill = engine.prefill(
            [
                PrefillRequest(
                    (*rollout.prompt_tokens, *rollout.tokens), len(rollout.prompt_tokens), 1.0
                )
            ]
        )[0]
        mask = np.array(rollout.mask)
        np.testing.assert_allclose(
            np.array(rollout.logprobs)[mask], prefill.logprobs[mask], atol=2e-5
        )
        assert not np.array(rollout.logprobs)[~mask].any()
    assert [state[3] for state in answers.calls[0]] == [1] * len(answers.calls[0])


def test_playing_again_gives_the_same_bits(make_engine: Any, chat: ChatFormat) -> None:
    one, two = make_rollouts(chat), make_rollouts(chat)
    for rollouts in (one, two):
        play(make_engine(batch_size=4), chat, Answers(again), rollouts)
    assert [(r.tokens, r.logprobs, r.mask) for r in one] == [
        (r.tokens, r.logprobs, r.mask) for r in two
    ]


def test_limits_of_turns_and_tokens_end_a_rollout(make_engine: Any, chat: ChatFormat) -> None:
    forever = Answers(lambda state: Reply((Message("user", "again"),)))
    rollouts = make_rollouts(chat)
    play(make_engine(), chat, forever, rollouts, max_turns=2)
    assert {rollout.finish_reason for rollout in rollouts} <= {"turns", "length"}
    assert any(rollout.finish_reason == "turns" for rollout in rollouts)
    assert all(len(rollout.turn_ends) <= 2 for rollout in rollouts)
    rollouts = make_rollouts(chat)
    play(make_engine(), chat, forever, rollouts, max_tokens=60, max_turns=50)
    assert {rollout.finish_reason for rollout in rollouts} == {"length"}
    assert all(rollout.model_tokens <= 60 for rollout in rollouts)
    assert all(rollout.mask[-1] for rollout in rollouts)
    rollouts = make_rollouts(chat)
    play(make_engine(), chat, forever, rollouts, max_total_tokens=150, max_turns=50)
    assert all(len(r.prompt_tokens) + len(r.tokens) <= 150 for r in rollouts)


def test_a_reply_that_fails_takes_only_its_own_rollout(make_engine: Any, chat: ChatFormat) -> None:
    def answer(state: State) -> Reply | None:
        if state[0] == 1:
            raise HostError("broke", kind="crash")
        return Reply((Message("user", ""),)) if state[0] == 2 else None

    rollouts = make_rollouts(chat)
    play(make_engine(), chat, Answers(answer), rollouts, max_turns=1)
    failed = {rollout.id for rollout in rollouts if rollout.failure}
    stopped = {rollout.id for rollout in rollouts if rollout.finish_reason == "stop"}
    assert failed == {"1"} & stopped


def test_an_environment_of_one_turn_is_never_asked(make_engine: Any, chat: ChatFormat) -> None:
    rollouts = make_rollouts(chat)
    play(make_engine(), chat, None, rollouts)
    assert all(len(rollout.turn_ends) == 1 for rollout in rollouts)


def test_cancelled_work_is_given_up(make_engine: Any, chat: ChatFormat) -> None:
    engine = make_engine(batch_size=1)
    rollouts = make_rollouts(chat)
    player = Player(engine, chat, {}, 1.0, 400, 900, 1)

    def finished(rollout: Rollout) -> None:
        engine.cancel("g2")

    with pytest.raises(WorkCancelled):
        asyncio.run(player.play(rollouts, finished))
