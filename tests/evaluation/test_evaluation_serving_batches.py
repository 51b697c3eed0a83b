"""Requests of several clients beside each other: each has its own end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from prime_core.api import EngineCapabilities, EngineError, Generation, GenerationRequest
from prime_core.evaluation.serving.desk import Desk, ModelFacts


class Fragile:
    """Says 0, 1, 2; a request of group `bad` breaks its stream after the first tokens were told."""

    def __init__(self, places: int) -> None:
        self.capabilities = EngineCapabilities("toy", "toy", False, True, continuous_batch=places)
        self.streams = 0

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        self.streams += 1
        batch = [request async for request in requests]
        for token in range(3):
            for request in batch:
                assert request.on_token is not None
                request.on_token(token, "" if token < 2 else "length")
            if any(request.group_id == "bad" for request in batch):
                raise EngineError("logits hold NaN", where="engine toy", fix="none")
        for request in batch:
            yield Generation(request.id, (0, 1, 2), (-1.0,) * 3, "length")

    def close(self) -> None:
        """Nothing is open."""


async def ask(engine: Any, groups: list[str]) -> tuple[list[Any], list[list[int]]]:
    desk = Desk(engine, None, ModelFacts("toy", None, 9), batch_size=8)
    told: list[list[int]] = [[] for _ in groups]
    desk.start()
    requests = [
        GenerationRequest(
            *(str(index), group, (1,), 0, 0, 3, 1.0),
            on_token=lambda token, finish, index=index: told[index].append(token),
        )
        for index, group in enumerate(groups)
    ]
    found = await asyncio.gather(*map(desk.generations.ask, requests), return_exceptions=True)
    await desk.stop()
    return found, told


@pytest.mark.parametrize(("places", "streams"), [(0, 5), (8, 4)])
def test_a_request_that_fails_costs_the_others_nothing(places: int, streams: int) -> None:
    engine = Fragile(places)
    found, told = asyncio.run(ask(engine, ["good", "bad", "fine", "well"]))
    assert [type(each) for each in found] == [Generation, EngineError, Generation, Generation]
    assert told == [[0, 1, 2], [0], [0, 1, 2], [0, 1, 2]]
    assert engine.streams == streams


def test_what_is_well_is_asked_for_once() -> None:
    engine = Fragile(0)
    found, told = asyncio.run(ask(engine, ["good", "fine"]))
    assert [each.token_ids for each in found] == [(0, 1, 2)] * 2
    assert told == [[0, 1, 2]] * 2
    assert engine.streams == 1
