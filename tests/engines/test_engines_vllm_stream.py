"""What a stream hands to vLLM, and what comes back of it without; the driver is played."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

from prime_core.api import EngineError, Generation, GenerationRequest
from prime_core.engines.vllm.stream import Stream
from prime_core.engines.vllm.window import Window


class Driver:
    """Ends every request at once, and takes cancellations of what it knows."""

    def __init__(self, *, closed: bool = False) -> None:
        self.begun: list[str] = []
        self.closed = closed

    def begin(self, works: Sequence[Any]) -> None:
        if self.closed:
            raise EngineError("the engine was closed", where="engine vllm", fix="open another")
        self.begun += [work.request.id for work in works]
        for work in works:
            work.done(work.generation("length"))

    def cancel(self, keys: Sequence[str]) -> None:
        """What isn't begun isn't known."""


def request(name: str, group: str) -> GenerationRequest:
    return GenerationRequest(name, group, (1,), 0, 0, 5, 1.0)


async def play(cancelling: bool, *, closed: bool = False) -> tuple[Driver, dict[str, str], Window]:
    driver = Driver(closed=closed)
    window = Window(8, lambda: 0.0)
    stream = Stream(
        driver,  # type: ignore[arg-type]
        window,
        itertools.count(),
        lambda request: None,
        keeps_rows=False,
    )

    async def requests() -> AsyncIterator[GenerationRequest]:
        yield request("a0", "A")
        yield request("a1", "A")
        if cancelling:
            stream.cancel("A")
        yield request("b0", "B")
        yield request("a2", "A")

    feeding = asyncio.create_task(stream.feed(requests()))
    found: dict[str, str] = {}
    while (each := await stream.answers.get()) is not None:
        if closed and isinstance(each, EngineError):
            break
        assert isinstance(each, Generation)
        found[each.id] = each.finish_reason
    await feeding
    return driver, found, window


def test_a_group_that_is_cancelled_before_it_is_handed_over_is_not_generated() -> None:
    driver, found, window = asyncio.run(play(cancelling=True))
    assert window._inside == 0
    assert driver.begun == ["b0"]
    assert found == {"a0": "cancelled", "a1": "cancelled", "b0": "length", "a2": "cancelled"}


def test_every_request_comes_back() -> None:
    driver, found, window = asyncio.run(play(cancelling=False))
    assert window._inside == 0
    assert driver.begun == ["a0", "a1", "b0", "a2"]
    assert set(found.values()) == {"length"}


def test_a_closed_driver_leaves_every_place_of_the_window_free_once() -> None:
    driver, found, window = asyncio.run(play(cancelling=True, closed=True))
    assert window._inside == 0
    assert driver.begun == []
    assert set(found.values()) == {"cancelled"}
