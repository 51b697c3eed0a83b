"""The loop of a process that works from the store: do what is there, else wait and say for whom.

Run by the intake and the validator. Nothing is remembered between turns but how long it waits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from prime_core.store import layout
from prime_core.store.objects import ObjectStore

POLL_S = 0.015  # a local store's listing costs about 50 microseconds a step
REMOTE_POLL_S = 1.0


class Poller(Protocol):
    """What is polled."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do, ever."""
        ...

    def poll(self) -> bool:
        """Do what is to be done now; whether there was anything."""
        ...

    def waiting_for(self) -> str:
        """For whom it waits, in words."""
        ...


def poll_until_finished(
    poller: Poller,
    store: ObjectStore,
    tell: Callable[[dict[str, Any]], None],
    *,
    logger: logging.Logger,
    say_every_s: float,
) -> None:
    """Poll until it is finished; blocks.

    Args:
        tell: gets metrics of a wait, for whom and since how many seconds, now and then.

    Raises:
        PrimeError: as its `poll`.
    """
    pause = POLL_S if store.local_path(layout.RUN) is not None else REMOTE_POLL_S
    idle_since, said = time.time(), time.monotonic()
    while not poller.finished:
        if poller.poll():
            idle_since, said = time.time(), time.monotonic()
            continue
        if time.monotonic() - said > say_every_s:
            said = time.monotonic()
            waiting = poller.waiting_for()
            logger.info("waiting for %s since %s", waiting, time.ctime(idle_since))
            tell({"waiting_for": waiting, "waiting_s": time.time() - idle_since})
        time.sleep(pause)
