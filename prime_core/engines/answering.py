"""An engine's answers, held to what was asked before a rollout takes them in.

Used by `turns`. Invariant: every request comes back once, with no more tokens than it asked for and
a log-probability for each; an engine that answers otherwise is stopped by name.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from prime_core.api import EngineError, Generation, GenerationRequest, InferenceEngine


async def answers(
    engine: InferenceEngine, requests: Sequence[GenerationRequest]
) -> AsyncGenerator[Generation, None]:
    """Generate; answers come as they end.

    Raises:
        EngineError: an answer nobody asked for, a second or a missing one, or one that doesn't fit
            its request.
    """
    waiting = {request.id: request for request in requests}
    generations = engine.generate(_stream(requests))
    try:
        async for generation in generations:
            request = waiting.pop(generation.id, None)
            if request is None:
                raise _broken(engine, f"answers {generation.id!r}, which nobody waits for")
            if problem := _misfit(request, generation):
                raise _broken(engine, f"{problem} for request {request.id}")
            yield generation
    finally:
        # What is under way ends now, not when the generator happens to be collected.
        if isinstance(generations, AsyncGenerator):
            await generations.aclose()
    if waiting:
        raise _broken(engine, f"gives no answer to {len(waiting)} requests: {next(iter(waiting))}")


def _misfit(request: GenerationRequest, generation: Generation) -> str:
    """What is wrong with an answer; "" where nothing is."""
    count = len(generation.token_ids)
    if count > request.max_tokens:
        return f"generates {count} tokens where {request.max_tokens} were asked"
    if len(generation.logprobs) != count:
        return f"gives {len(generation.logprobs)} log-probabilities of {count} tokens"
    if not count and generation.finish_reason != "cancelled":
        return "generates no token"
    return ""


def _broken(engine: InferenceEngine, what: str) -> EngineError:
    return EngineError(
        f"the engine {what}",
        where=f"engine {engine.capabilities.name}",
        fix="tell its authors: `InferenceEngineContract` of prime_core.testing finds such answers",
    )


async def _stream(requests: Sequence[GenerationRequest]) -> AsyncIterator[GenerationRequest]:
    for request in requests:
        yield request
