"""What runs in a Ray worker: an order begun there, and its units done one by one.

`ray_crew` makes an actor of it. It imports no Ray, and answers with plain JSON: an error of ours
is told, not raised, because exceptions of ours don't survive pickling.
"""

from __future__ import annotations

import os
import socket
from contextlib import AsyncExitStack
from typing import Any

from prime_core.api.errors import PrimeError
from prime_core.evaluation.orders import Order
from prime_core.evaluation.work import Work, open_work


class RayWorker:
    """One worker; Ray runs its methods on one event loop, several at a time."""

    def __init__(self, order: str) -> None:
        self._order = order
        self._stack = AsyncExitStack()
        self._work: Work | None = None

    async def open(self) -> dict[str, Any]:
        """Begin the order; {"host", "pid"} or {"error"}."""
        try:
            self._work = await open_work(Order.from_json(self._order), self._stack)
        except PrimeError as error:
            return {"error": _told(error)}
        return {"host": socket.gethostname(), "pid": os.getpid()}

    async def do(self, items: list[Any]) -> dict[str, Any]:
        """Do one unit; {"results"} or {"error"}."""
        assert self._work is not None
        try:
            return {"results": await self._work.do(items)}
        except PrimeError as error:
            return {"error": _told(error)}

    async def close(self) -> None:
        """End hosts and engine."""
        await self._stack.aclose()


def _told(error: PrimeError) -> dict[str, str | None]:
    return {"what": error.what, "where": error.where, "fix": error.fix}
