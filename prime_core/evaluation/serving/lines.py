"""Waiting lines before the engine: what several clients ask for at once is answered together.

Used by `desk`, one line for generations and one for prefills. Invariant: an item is given to the
engine once or not at all, and every item that was is answered, with an error where the batch fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# How long an idle engine waits for others to come: nothing beside a generation, and clients that
# ask at once arrive within it.
GATHER_S = 0.005


class Line(Generic[Item, Answer]):
    """Items in order of arrival, answered in batches.

    Args:
        run: answers a batch, in order; an item's answer may be the error that it alone has.
        most: items of a batch.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | BaseException]]],
        most: int,
    ) -> None:
        self._run = run
        self._most = most
        self._waiting: asyncio.Queue[tuple[Item, asyncio.Future[Answer]]] = asyncio.Queue()

    @property
    def length(self) -> int:
        """Items that wait."""
        return self._waiting.qsize()

    async def ask(self, item: Item) -> Answer:
        """Wait for the answer to one item; whoever is cancelled meanwhile leaves the line.

        Raises:
            Exception: what the item or its batch failed with.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((item, answer))
        return await answer

    async def work(self) -> None:
        """Answer batches until cancelled."""
        while True:
            first = await self._waiting.get()
            await asyncio.sleep(GATHER_S)
            batch = [first]
            while len(batch) < self._most and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await self._answer([entry for entry in batch if not entry[1].done()])

    async def _answer(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        if not batch:
            return
        try:
            found = await self._run([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - told to everyone who waits, nothing is dropped
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), value in zip(batch, found, strict=True):
            if answer.done():
                continue
            if isinstance(value, BaseException):
                answer.set_exception(value)
            else:
                answer.set_result(value)
