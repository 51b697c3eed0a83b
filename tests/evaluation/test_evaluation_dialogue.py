"""Rollouts of text, turn by turn, with an engine and an environment that are made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from prime_core.api import (
    EngineError,
    Generation,
    GenerationRequest,
    HostError,
    Message,
    Reply,
    Usage,
)
from prime_core.evaluation.dialogue import Spoken, Talker

PROMPT = (Message("user", "count"),)


class Engine:
    """Says its script, and remembers what it was asked."""

    def __init__(self, *script: Generation) -> None:
        self.script = list(script)
        self.asked: list[GenerationRequest] = []
        self.capabilities = type("Capabilities", (), {"name": "made-up"})

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        async for request in requests:
            self.asked.append(request)
            if self.script:
                yield self.script.pop(0)


def says(text: str, reason: Any = "stop", tokens: int = 3, failure: str = "") -> Generation:
    return Generation("", (), (), reason, text=text, usage=Usage(5, tokens, 0.5), failure=failure)


class Environment:
    """Answers until the model says stop; fails where it says fail."""

    async def reply(self, states: Sequence[Any]) -> list[Reply | None]:
        ((_, prompt, messages, turn),) = states
        assert prompt == PROMPT
        said = messages[-1].content
        if said == "fail":
            raise HostError("it broke", kind="crash")
        return [None if said == "stop" else Reply((Message("user", f"turn {turn}"),))]


def play(engine: Engine, several: bool = True, **limits: int) -> Spoken:
    values = {"max_tokens": 100, "max_turns": 4} | limits
    talker = Talker(engine, Environment() if several else None, 1.0, **values)  # type: ignore[arg-type]
    return asyncio.run(talker.play("7/0", 7, PROMPT, seed=9))


def test_turns_alternate_and_usage_adds_up() -> None:
    engine = Engine(says("one"), says("stop", tokens=4))
    found = play(engine)
    assert [m.content for m in found.messages] == ["one", "turn 1", "stop"]
    assert engine.asked[1].messages == (*PROMPT, *found.messages[:2])
    assert [one.max_tokens for one in engine.asked] == [100, 97]
    assert found.usage == Usage(10, 7, 1.0)
    completion = found.completion()
    assert (completion.text, completion.finish_reason, completion.token_count) == (
        "stop",
        "stop",
        7,
    )


@pytest.mark.parametrize(
    ("script", "limits", "reason", "failure"),
    [
        ([says("cut", "length")], {}, "length", ""),
        ([says("a"), says("b"), says("c")], {"max_turns": 2}, "turns", ""),
        ([says("a"), says("b")], {"max_tokens": 6}, "length", ""),
        ([says("fail")], {}, "stop", "reply: it broke"),
    ],
)
def test_every_end_has_its_name(
    script: list[Generation], limits: dict[str, int], reason: str, failure: str
) -> None:
    found = play(Engine(*script), **limits)
    assert (found.finish_reason, found.failure, found.retry) == (reason, failure, "")


def test_one_turn_is_enough_without_replies() -> None:
    found = play(Engine(says("4")), several=False)
    assert (found.finish_reason, found.completion().text) == ("stop", "4")


def test_what_the_endpoint_gave_up_is_to_be_tried_again() -> None:
    found = play(Engine(says("one"), says("", failure="HTTP 500")))
    assert (found.retry, found.failure) == ("HTTP 500", "")


def test_an_engine_that_says_nothing_is_an_error() -> None:
    with pytest.raises(EngineError, match="answered one request 0 times"):
        play(Engine())
