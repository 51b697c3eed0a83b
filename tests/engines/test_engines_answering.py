"""An engine that breaks its contract is stopped by name, before a rollout takes in its words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from prime_core.api import EngineError, Generation, GenerationRequest
from prime_core.engines.answering import answers

Saying = Callable[[GenerationRequest], list[Generation]]


def said(request: GenerationRequest, tokens: int, **changes: Any) -> Generation:
    logprobs = changes.pop("logprobs", tokens)
    return Generation(
        **{
            "id": request.id,
            "token_ids": (1,) * tokens,
            "logprobs": (-1.0,) * logprobs,
            "finish_reason": "stop",
            **changes,
        }
    )


class Engine:
    """Answers each request as a function says; remembers whether its stream was closed."""

    capabilities = SimpleNamespace(name="odd")

    def __init__(self, saying: Saying) -> None:
        self.saying = saying
        self.closed = False

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        try:
            async for request in requests:
                for generation in self.saying(request):
                    yield generation
        finally:
            self.closed = True


def gather(engine: Any) -> list[Generation]:
    requests = [GenerationRequest(f"r{n}", "g", (1, 2), n, 0, 3, 1.0) for n in range(4)]

    async def run() -> list[Generation]:
        return [each async for each in answers(engine, requests)]

    return asyncio.run(run())


def test_answers_that_fit_pass() -> None:
    found = gather(Engine(lambda request: [said(request, 3, finish_reason="length")]))
    assert [each.id for each in found] == ["r0", "r1", "r2", "r3"]
    cancelled = gather(Engine(lambda request: [said(request, 0, finish_reason="cancelled")]))
    assert len(cancelled) == 4


@pytest.mark.parametrize(
    ("saying", "what"),
    [
        (lambda request: [said(request, 4)], "generates 4 tokens where 3 were asked"),
        (lambda request: [said(request, 2, logprobs=1)], "1 log-probabilities of 2 tokens"),
        (lambda request: [said(request, 0)], "generates no token"),
        (lambda request: [said(request, 1)] * 2, "which nobody waits for"),
        (lambda request: [said(request, 1, id="other")], "which nobody waits for"),
        (lambda request: [said(request, 1)] * (request.id != "r2"), "no answer to 1 requests: r2"),
    ],
    ids=["more", "lengths", "nothing", "twice", "unknown", "missing"],
)
def test_an_engine_that_answers_otherwise_is_stopped_by_name(saying: Saying, what: str) -> None:
    engine = Engine(saying)
    with pytest.raises(EngineError, match=what) as raised:
        gather(engine)
    assert raised.value.where == "engine odd"
    assert engine.closed
