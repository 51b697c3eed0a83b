"""Wakes the requests that wait for something new, from whatever thread it comes.

`server` holds one; origin and relay ring it when their library has more.
"""

from __future__ import annotations

import asyncio
import contextlib


class Bell:
    """Wakes everybody who waits in the loop; may be rung from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._event = loop, asyncio.Event()
        self.waiters = 0

    def ring(self) -> None:
        """Something changed."""
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Until the next ring, or for so long."""
        event = self._event
        self.waiters += 1
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return
        finally:
            self.waiters -= 1
