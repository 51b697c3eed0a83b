"""Commands for one thread, taken in order; nothing that is put in is forgotten.

Used by `driver`. Invariant: a command is run by the loop, or left over for its end, or refused;
none is put into an inbox that nobody reads.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeAlias

Command: TypeAlias = Callable[[], None]


class Inbox:
    """A queue that can be closed."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False

    def put(self, command: Command) -> bool:
        """Add a command; False where nobody will run it any more."""
        with self._lock:
            if not self._closed:
                self._queue.put(command)
            return not self._closed

    def get(self, timeout: float | None) -> Command:
        """The next command.

        Raises:
            queue.Empty: none came within `timeout` seconds.
        """
        return self._queue.get(timeout=timeout)

    def close(self) -> list[Command]:
        """Take no more; what was left, in order."""
        with self._lock:
            self._closed = True
        left = []
        while not self._queue.empty():
            left.append(self._queue.get())
        return left
