"""The window of requests: wide by itself, narrower after preemptions, wider again after calm."""

from __future__ import annotations

import asyncio

import pytest

from prime_core.engines.vllm.window import Window


def test_a_full_window_waits_for_a_place() -> None:
    async def run() -> None:
        window = Window(1, lambda: 0.0)
        await window.enter()
        await window.enter()
        waiting = asyncio.create_task(window.enter())
        await asyncio.sleep(0)
        assert window.is_full
        assert not waiting.done()
        window.leave()
        await waiting

    asyncio.run(run())


def test_preemptions_narrow_it_and_calm_widens_it() -> None:
    preempted = [0.0]

    async def run() -> None:
        window = Window(8, lambda: preempted[0])
        limits = []
        for _ in range(16):
            await window.enter()
        for end in range(8):
            preempted[0] += end < 2
            window.leave()
            limits.append(window.limit)
        assert limits == [12, 9, 9, 9, 9, 10, 10, 10]
        again = Window(8, lambda: preempted[0], limits[-1])
        assert again.limit == 10

    asyncio.run(run())


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_it_never_closes(batch: int) -> None:
    preempted = [0.0]

    async def run() -> None:
        window = Window(batch, lambda: preempted[0])
        for _ in range(50):
            await window.enter()
            preempted[0] += 1
            window.leave()
            assert window.limit >= 1

    asyncio.run(run())
