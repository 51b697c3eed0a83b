"""What tests on a GPU share: prompts, streams, figures."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from prime_core.api import Generation, GenerationRequest


def make_requests(
    count: int, vocab: int, *, prompt: int = 60, max_tokens: int = 64, temperature: float = 1.0
) -> list[GenerationRequest]:
    """Groups of four that share a prompt."""
    rng = random.Random(count)
    requests: list[GenerationRequest] = []
    for group in range((count + 3) // 4):
        tokens = tuple(rng.randrange(vocab) for _ in range(rng.randrange(1, prompt)))
        for sample in range(min(4, count - 4 * group)):
            name, seed = f"{group}/{sample}", rng.getrandbits(63)
            requests.append(
                GenerationRequest(name, str(group), tokens, seed, 0, max_tokens, temperature)
            )
    return requests


def collect(engine: Any, requests: Sequence[GenerationRequest]) -> dict[str, Generation]:
    """One stream of all requests."""

    async def stream() -> AsyncIterator[GenerationRequest]:
        for request in requests:
            yield request

    async def run() -> dict[str, Generation]:
        return {each.id: each async for each in engine.generate(stream())}

    return asyncio.run(run())


def report(name: str, figures: dict[str, Any]) -> None:
    """Print figures, and keep them under $OUT where that is set."""
    line = json.dumps({name: figures})
    print(line)
    if folder := os.environ.get("OUT"):
        with (Path(folder) / "gpu.jsonl").open("a") as file:
            file.write(line + "\n")
