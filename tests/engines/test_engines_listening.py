"""What an engine says while it generates, and the alternatives that a prefill names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np

from prime_core.api import Generation, GenerationRequest, PrefillRequest

PROMPT = (3, 5, 7, 11)


def generate(engine: Any, requests: list[GenerationRequest]) -> list[Generation]:
    async def stream() -> AsyncIterator[GenerationRequest]:
        for request in requests:
            yield request

    async def run() -> list[Generation]:
        return [generation async for generation in engine.generate(stream())]

    return asyncio.run(run())


def requests(count: int) -> list[GenerationRequest]:
    return [
        GenerationRequest(str(k), str(k), PROMPT, 1000 + k, 0, 4 + 5 * k, 1.0) for k in range(count)
    ]


def test_every_token_is_told_once_with_the_end_of_the_turn(make_engine: Any) -> None:
    heard: dict[str, list[tuple[int, str]]] = {}

    def listening(request: GenerationRequest) -> GenerationRequest:
        told = heard.setdefault(request.id, [])
        return replace(request, on_token=lambda token, finish: told.append((token, finish)))

    engine = make_engine()
    for generation in generate(engine, [listening(request) for request in requests(6)]):
        told = heard[generation.id]
        assert tuple(token for token, _ in told) == generation.token_ids
        ends = [finish for _, finish in told]
        assert ends == [""] * (len(told) - 1) + [generation.finish_reason]


def test_a_listener_changes_no_token(make_engine: Any) -> None:
    engine = make_engine()
    plain = generate(engine, requests(4))
    deaf = [replace(request, on_token=lambda token, finish: None) for request in requests(4)]
    assert generate(engine, deaf) == plain


def test_a_cancelled_group_is_told_no_more(make_engine: Any) -> None:
    engine = make_engine()
    heard: list[int] = []

    def hear(token: int, finish: str) -> None:
        heard.append(token)
        if len(heard) == 3:
            engine.cancel("0")

    first, *others = requests(3)
    first = replace(first, max_tokens=30, on_token=hear)
    found = generate(engine, [first, *others])
    assert len(heard) == len(found[0].token_ids) == 3
    assert found[0].finish_reason == "cancelled"


def test_the_best_alternatives_come_first_and_the_chosen_one_has_its_own_number(
    make_engine: Any,
) -> None:
    engine = make_engine()
    tokens = (*PROMPT, 2, 4, 6)
    plain, named = engine.prefill(
        [PrefillRequest(tokens, 1, 1.0), PrefillRequest(tokens, 1, 1.0, top=5)]
    )
    assert plain.top == ()
    np.testing.assert_array_equal(plain.logprobs, named.logprobs)
    assert len(named.top) == len(tokens) - 1
    (everything,) = engine.prefill([PrefillRequest(tokens, 1, 1.0, top=10**6)])
    for position, row in enumerate(named.top):
        values = [value for _, value in row]
        assert values == sorted(values, reverse=True)
        assert len(row) == 5
        whole = dict(everything.top[position])
        assert whole[tokens[position + 1]] == np.float32(named.logprobs[position])
        assert abs(sum(np.exp(list(whole.values()))) - 1) < 1e-5
