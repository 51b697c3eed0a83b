"""What tests of the engine `vllm` share: where vLLM is, requests, streams and their results."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from prime_core.api import Generation, GenerationRequest

ROOT = Path(__file__).parents[2]
START_S = 900.0  # vLLM's imports alone take a minute on a busy machine


@cache
def vllm_python() -> Path | None:
    """An interpreter with vLLM: `PRIME_VLLM_PYTHON`, that of `make vllm`, or None for this one.

    Skips where there is none.
    """
    named = os.environ.get("PRIME_VLLM_PYTHON")
    if named:
        return Path(named)
    made = ROOT / ".venv-vllm" / "bin" / "python"
    if made.exists():
        return made
    if find_spec("vllm") is None:
        pytest.skip("vLLM isn't installed; `make vllm` installs it")
    return None


def make_requests(
    count: int = 32, *, group: int = 4, longest: int = 20, max_tokens: int = 40, seed: int = 5
) -> list[GenerationRequest]:
    """Groups of ragged prompts at three temperatures, one of them greedy."""
    rng = random.Random(seed)
    requests = []
    for k in range(count // group):
        temperature = (1.0, 0.7, 0.0)[k % 3]
        prompt = tuple(rng.randrange(44) for _ in range(rng.randrange(1, longest)))
        requests += [
            GenerationRequest(
                f"{k}/{i}", str(k), prompt, rng.getrandbits(63), 0, max_tokens, temperature
            )
            for i in range(group)
        ]
    return requests


async def stream(requests: Sequence[GenerationRequest]) -> AsyncIterator[GenerationRequest]:
    """All requests at once."""
    for request in requests:
        yield request


def collect(engine: Any, requests: Sequence[GenerationRequest]) -> dict[str, Generation]:
    """Run a stream to its end."""

    async def run() -> list[Generation]:
        return [generation async for generation in engine.generate(stream(requests))]

    generations = asyncio.run(run())
    assert len({generation.id for generation in generations}) == len(generations)
    return {generation.id: generation for generation in generations}
