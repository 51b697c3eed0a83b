"""The thread that starts a sandbox's launchers, where it can inside their jails' cgroups.

Used by the pool. Invariant: the thread lives as long as its sandbox, because a launcher that dies
with its parent dies with the thread that started it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from prime_core.api.jails.cgroups import Cgroup

Made = TypeVar("Made")


class Births:
    """One thread, and the group that it waits in between two launches."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jails")
        self._lobby: Cgroup | None = None

    def soon(self, action: Callable[[], Made]) -> Future[Made]:
        """Run something in the thread; its result or error is the future's."""
        return self._thread.submit(action)

    def inside(
        self, cgroup: Cgroup, lobby: Callable[[], Cgroup | None], start: Callable[[], Made]
    ) -> Made:
        """Start a process, in our thread, so that it is born in a group where that can be.

        Args:
            cgroup: the group; `cgroup.entered` says afterwards whether the process is in it.
            lobby: makes the group in which the thread waits, once.

        Raises:
            SandboxError: the thread can't get there, or the lobby can't be made.
        """
        if cgroup.can_be_entered:
            self._lobby = self._lobby or lobby()
        if not cgroup.can_be_entered or self._lobby is None:
            return start()
        try:
            cgroup.enter()
            return start()
        finally:
            self._lobby.enter()

    def close(self) -> None:
        """Do what is still to be done, then end the thread."""
        self._thread.shutdown(wait=True)
        if self._lobby is not None:
            self._lobby.remove()
