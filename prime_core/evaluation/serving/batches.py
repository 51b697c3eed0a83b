"""Several clients' generations asked of the engine together.

Used by `desk`. Invariant: one that fails costs the others nothing but time, and no token is told
twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from prime_core.api import EngineError, Generation, GenerationRequest, InferenceEngine

Answer = Generation | BaseException


async def generate_each(
    engine: InferenceEngine, requests: Sequence[GenerationRequest]
) -> list[Answer]:
    """The generation of each request, or what it failed with, in order."""
    if engine.capabilities.continuous_batch:  # streams share the batch: each has its own
        return await _apart(engine, requests)
    told = [0] * len(requests)
    counting = [_counting(request, told, index) for index, request in enumerate(requests)]
    try:
        found = {one.id: one async for one in engine.generate(_stream(counting))}
        return [found[request.id] for request in requests]
    except EngineError as error:
        if len(requests) == 1:
            return [error]
    answers: list[Answer] = []
    for request, count in zip(requests, told, strict=True):
        answers += await _apart(engine, [_untold(request, count)])
    return answers


async def _apart(engine: InferenceEngine, requests: Sequence[GenerationRequest]) -> list[Answer]:
    return await asyncio.gather(
        *(_alone(engine, request) for request in requests), return_exceptions=True
    )


async def _alone(engine: InferenceEngine, request: GenerationRequest) -> Generation:
    [found] = [one async for one in engine.generate(_stream([request]))]
    return found


def _counting(request: GenerationRequest, told: list[int], index: int) -> GenerationRequest:
    """The same request; what was told of it is counted."""
    tell = request.on_token
    if tell is None:
        return request

    def on_token(token: int, finish: str) -> None:
        told[index] += 1
        tell(token, finish)

    return replace(request, on_token=on_token)


def _untold(request: GenerationRequest, count: int) -> GenerationRequest:
    """The same request; its first tokens aren't told again: its seed makes them what they were."""
    tell = request.on_token
    if tell is None:
        return request
    left = count

    def on_token(token: int, finish: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            tell(token, finish)

    return replace(request, on_token=on_token)


async def _stream(requests: Sequence[GenerationRequest]) -> AsyncIterator[GenerationRequest]:
    for request in requests:
        yield request
