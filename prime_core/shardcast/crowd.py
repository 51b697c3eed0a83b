"""The connections of one server, and which of them gives way when there are too many.

`server` tells it who comes, waits and leaves. The longest idle one goes first; where none is idle,
the oldest of the address that holds the most, so that nobody is kept out by one who never reads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict


class Crowd:
    """At most `limit` connections."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._idle: OrderedDict[asyncio.StreamWriter, None] = OrderedDict()
        self._addresses: dict[asyncio.StreamWriter, str] = {}
        self._of: dict[str, OrderedDict[asyncio.StreamWriter, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, writer: asyncio.StreamWriter, address: str) -> None:
        """A connection has come; another one is aborted where there are too many."""
        self._addresses[writer] = address
        self._of.setdefault(address, OrderedDict())[writer] = None
        if len(self) > self._limit:
            most = max(self._of.values(), key=len)
            oldest = next(iter(self._idle or most))
            self.leave(oldest)
            oldest.transport.abort()

    def leave(self, writer: asyncio.StreamWriter) -> None:
        """It has ended, or was aborted here."""
        self._idle.pop(writer, None)
        address = self._addresses.pop(writer, None)
        if address is not None:
            del self._of[address][writer]
            if not self._of[address]:
                del self._of[address]

    def waits(self, writer: asyncio.StreamWriter) -> None:
        """It has no request under way."""
        if writer in self._addresses:
            self._idle[writer] = None

    def works(self, writer: asyncio.StreamWriter) -> None:
        """A request of it has come."""
        self._idle.pop(writer, None)
