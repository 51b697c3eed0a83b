"""The window of requests: wide by itself, narrower after preemptions, wider again after calm."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from prime_core.api import GenerationRequest
from prime_core.engines.vllm.stream import Stream
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


class Begun:
    """A driver that begins whatever it's asked and ends what a test ends."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def begin(self, works: Sequence[Any]) -> None:
        self.works += works

    def cancel(self, keys: Sequence[str]) -> None:
        """What was cancelled comes back."""
        for work in [work for work in self.works if work.key in keys]:
            self.end(work, "cancelled")

    def end(self, work: Any, reason: str = "stop") -> None:
        self.works.remove(work)
        work.done(work.generation(reason))


async def requests(count: int) -> AsyncIterator[GenerationRequest]:
    for index in range(count):
        yield GenerationRequest(f"{index}", "g", (1,), 0, 0, 4, 1.0)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_streams_share_one_window() -> None:
    async def run() -> None:
        driver, window, keys = Begun(), Window(2, lambda: 0.0), itertools.count()
        streams = [
            Stream(driver, window, keys, lambda request: None, keeps_rows=False)  # type: ignore
            for _ in range(2)
        ]
        feeding = [asyncio.create_task(stream.feed(requests(3))) for stream in streams]
        await turns()
        assert len(driver.works) == 4  # of six
        for left in (4, 4, 3, 2, 1, 0):
            driver.end(driver.works[0])
            await turns()
            assert len(driver.works) == left
        await asyncio.gather(*feeding)
        assert [stream.answers.qsize() for stream in streams] == [4, 4]  # three and the end

    asyncio.run(run())


@pytest.mark.parametrize("after", range(8))
def test_a_stream_that_is_given_up_gives_its_places_back(after: int) -> None:
    """At whichever turn of the event loop, and whether or not they were handed over."""

    async def run() -> None:
        driver, window = Begun(), Window(4, lambda: 0.0)
        stream = Stream(driver, window, itertools.count(), lambda _: None, keeps_rows=False)  # type: ignore
        feeding = asyncio.create_task(stream.feed(requests(20)))
        await turns(after)
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        stream.abandon()
        await turns()
        for _ in range(8):
            assert not window.is_full
            await window.enter()
        assert window.is_full

    asyncio.run(run())
