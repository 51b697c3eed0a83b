"""One stream of requests on its way into vLLM and back.

Made by `engine` for each call of `generate`; lives in the caller's event loop. Invariant: every
request that was taken from the stream comes back once, or the stream ends with an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeAlias

from prime_core.api import Generation, GenerationRequest
from prime_core.engines.vllm.driver import Driver
from prime_core.engines.vllm.window import Window
from prime_core.engines.vllm.work import Generating

logger = logging.getLogger("prime_core.engines.vllm")

Answer: TypeAlias = Generation | BaseException


class Stream:
    """Feeds a driver from an iterator, and gathers what comes back.

    Args:
        window: which the engine's streams share.
        keys: names of requests, unique among all streams of the engine.
        check: raises for a request that the model can't be asked.
        keeps_rows: whether hidden states are part of the generations.
    """

    def __init__(
        self,
        driver: Driver,
        window: Window,
        keys: Iterator[int],
        check: Callable[[GenerationRequest], None],
        *,
        keeps_rows: bool,
    ) -> None:
        self.window = window
        self.answers: asyncio.Queue[Answer | None] = asyncio.Queue()
        self._driver = driver
        self._keys = keys
        self._check = check
        self._keeps_rows = keeps_rows
        self._loop = asyncio.get_running_loop()
        self._groups: dict[str, set[str]] = {}
        self._cancelled: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def feed(self, requests: AsyncIterator[GenerationRequest]) -> None:
        """Hand over what the window lets in; the answers end with None, or with an error."""
        batch: list[Generating] = []
        coming = aiter(requests)
        following = asyncio.ensure_future(anext(coming, None))
        try:
            while True:
                await asyncio.sleep(0)
                if batch and (not following.done() or self.window.is_full):
                    self._hand_over(batch)
                request = await following
                if request is None:
                    break
                work = self._work(request)
                await self.window.enter()
                following = asyncio.ensure_future(anext(coming, None))
                self._groups.setdefault(request.group_id, set()).add(work.key)
                self._idle.clear()
                batch.append(work)
            self._hand_over(batch)
            await self._idle.wait()
            self.answers.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - the reader of the stream raises it
            self.answers.put_nowait(error)
        finally:
            following.cancel()
            for _ in batch:  # never handed over
                self.window.leave()

    def _hand_over(self, batch: list[Generating]) -> None:
        """Begin what nobody has cancelled: the driver forgets cancellations of what it hasn't.

        What is left in the batch, where the driver is closed, holds its place still.
        """
        gone = [work for work in batch if work.request.group_id in self._cancelled]
        batch[:] = [work for work in batch if work.request.group_id not in self._cancelled]
        for work in gone:
            self._done(work.key, work.request.group_id, work.generation("cancelled"))
        if batch:
            self._driver.begin(tuple(batch))
        batch.clear()

    def cancel(self, group_id: str) -> None:
        """End a group's requests, those too that are still to come."""
        self._cancelled.add(group_id)
        self._driver.cancel(sorted(self._groups.get(group_id, ())))

    def abandon(self) -> None:
        """Nobody reads the answers any more: end what is under way."""
        self._driver.cancel(sorted(key for keys in self._groups.values() for key in keys))

    def _work(self, request: GenerationRequest) -> Generating:
        self._check(request)
        key = f"g{next(self._keys)}"

        def done(found: Answer) -> None:
            try:
                self._loop.call_soon_threadsafe(self._done, key, request.group_id, found)
            except RuntimeError:
                logger.debug("request %s ended after its event loop: nobody waits", request.id)

        return Generating(
            key=key,
            request=request,
            wants_rows=self._keeps_rows or request.commitment is not None,
            keeps_rows=self._keeps_rows,
            done=done,
        )

    def _done(self, key: str, group: str, found: Answer) -> None:
        self._groups[group].discard(key)
        if not self._groups[group]:
            del self._groups[group]
        self.answers.put_nowait(found)
        self.window.leave()
        if not self._groups:
            self._idle.set()
