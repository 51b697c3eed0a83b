"""How many requests vLLM is handed at once: more than it runs, fewer where its cache is too small.

Used by `stream`, in its event loop. vLLM admits what fits now and preempts what grew too long
later, and a preempted sequence is computed again: work that a smaller batch wouldn't have cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# Requests handed over beyond those that run: vLLM's queue never runs dry.
_AHEAD = 2
# After a preemption the window is this share of what was in it.
_BACK = 0.75
# Requests that have to end without a preemption before one more is let in.
_CALM = 4


class Window:
    """Additive increase, multiplicative decrease, as in TCP.

    Args:
        batch_size: the most that vLLM runs together.
        preemptions: their number so far.
        limit: what an earlier window has come to; None to begin with the most.
    """

    def __init__(
        self, batch_size: int, preemptions: Callable[[], float], limit: int | None = None
    ) -> None:
        self._most = _AHEAD * batch_size
        self._preemptions = preemptions
        self._seen = preemptions()
        self._inside = 0
        self._calm = 0
        self._changed = asyncio.Event()
        self.limit = self._most if limit is None else limit

    @property
    def is_full(self) -> bool:
        """Whether a request would have to wait."""
        return self._inside >= self.limit

    async def enter(self) -> None:
        """Wait for a place."""
        while self.is_full:
            self._changed.clear()
            await self._changed.wait()
        self._inside += 1

    def leave(self) -> None:
        """A request ended: adapt to what happened meanwhile."""
        now, self._calm = self._preemptions(), self._calm + 1
        if now > self._seen:
            self.limit = max(1, int(_BACK * min(self.limit, self._inside)))
            self._calm = 0
        elif self._calm >= _CALM and self.limit < self._most:
            self.limit, self._calm = self.limit + 1, 0
        self._seen = now
        self._inside -= 1
        self._changed.set()
