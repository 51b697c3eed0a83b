"""What all relays of a client announce, heard as soon as they know it.

Relays and followers hold one `Announcements`. A version counts as announced once a relay that lists
it has given its signed header; whether it gives the rest as well is seen when it's fetched.
"""

from __future__ import annotations

import logging
import threading
import time

from prime_core.shardcast.client import Client, read_listing
from prime_core.shardcast.connection import Cancelled, RelayError, RelayLied

logger = logging.getLogger(__name__)

_WAIT_S = 10  # one answer is held so long
_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0


class Announcements:
    """One thread a relay, from `start` to `close`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()
        self._condition = threading.Condition()
        self._listed: dict[str, set[int]] = {}
        self._changes = 0
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to listen; returns at once."""
        for address in self._client.relays.addresses:
            thread = threading.Thread(
                target=self._listen, args=(address,), name=f"listen {address}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """End the threads and wait for them."""
        self._stop.set()
        self.ring()
        for thread in self._threads:
            thread.join()

    def versions(self) -> set[int]:
        """What any relay has announced last."""
        with self._condition:
            return {version for listed in self._listed.values() for version in listed}

    def ring(self) -> None:
        """Wake `wait`: something else has changed."""
        with self._condition:
            self._changes += 1
            self._condition.notify_all()

    def wait(self, seconds: float) -> None:
        """Until something changes that a `wait` hasn't returned for, or for so long."""
        with self._condition:
            self._condition.wait_for(lambda: self._changes > 0, seconds)
            self._changes = 0

    def _listen(self, address: str) -> None:
        pause = _PAUSE_S
        newest: int | None = None
        with self._client.connection(address) as connection:
            while not self._stop.is_set():
                asked, stopped = time.monotonic(), self._stop.is_set
                try:
                    told = read_listing(connection, after=newest, wait_s=_WAIT_S, cancelled=stopped)
                    listed = set(self._client.proofs.proven(connection, told, stopped))
                except Cancelled:
                    return
                except RelayError as error:
                    if isinstance(error, RelayLied):
                        self._client.relays.lied(address)
                    level = logging.WARNING if pause == _PAUSE_S else logging.DEBUG
                    logger.log(level, "%s can't be heard: %s", address, error)
                    self._hear(address, set())
                    newest = None
                    self._stop.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
                else:
                    pause, before, newest = _PAUSE_S, newest, max(listed, default=None)
                    self._hear(address, listed)
                    if newest == before and time.monotonic() - asked < _WAIT_S / 2:
                        self._stop.wait(_PAUSE_S)  # it doesn't wait: asking at once would never end

    def _hear(self, address: str, listed: set[int]) -> None:
        with self._condition:
            if self._listed.get(address) != listed:
                self._listed[address] = listed
                self._changes += 1
                self._condition.notify_all()
