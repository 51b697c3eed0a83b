"""A relay: takes versions from its upstreams, checks every shard, serves what was checked.

`prime-core relay` runs it. It begins to serve a version with its first shard, keeps the newest few,
and goes on after a restart with what it has.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from prime_core.api.errors import PrimeError
from prime_core.shardcast.client import Client
from prime_core.shardcast.connection import Cancelled
from prime_core.shardcast.incoming import DiskFull
from prime_core.shardcast.listening import Announcements

logger = logging.getLogger(__name__)

AT_ONCE = 2  # versions under way: the one being published isn't kept waiting by an older one
_RETRY_S = 1.0
_LONGEST_RETRY_S = 60.0


class Puller:
    """Keeps a relay's shelf at its upstreams' newest versions, from `start` to `close`.

    Args:
        client: its relays are the upstreams.
        keep: newest versions that are wanted.
        changed: called when more may be served.
    """

    def __init__(self, client: Client, keep: int, changed: Callable[[], None]) -> None:
        self._client, self._keep, self._changed = client, keep, changed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._announced = Announcements(client)
        self._running: set[int] = set()
        self._retry: dict[int, tuple[float, float]] = {}  # version: (not before, next pause)
        self._lacked_room: set[int] = set()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Recover what is on disk, listen to every upstream, fetch; returns at once.

        Raises:
            StoreError: the directory holds what isn't this relay's.
        """
        self._client.shelf.find()
        self._spawn("recover", self._recover)
        self._announced.start()
        self._spawn("schedule", self._schedule)

    def close(self) -> None:
        """End every transfer and wait for it."""
        self._stop.set()
        self._announced.close()
        for thread in list(self._threads):
            thread.join()

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _recover(self) -> None:
        self._client.shelf.recover(self._stop)
        self._client.shelf.trim()
        self._tell()

    def _tell(self) -> None:
        counters, shelf = self._client.counters, self._client.shelf
        counters.set("versions_held", len(shelf.whole()))
        counters.set("disk_bytes", shelf.used())
        self._changed()
        self._announced.ring()

    def _schedule(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                version = self._next()
                if version is not None:
                    self._running.add(version)
            if version is None:
                self._announced.wait(0.5)
                continue
            self._spawn(f"version {version}", partial(self._pull, version))

    def _next(self) -> int | None:
        """The newest version that is wanted and not under way."""
        if len(self._running) >= AT_ONCE:
            return None
        shelf, now = self._client.shelf, time.monotonic()
        present = shelf.present()
        kept = present[-self._keep :]
        floor = kept[0] if len(kept) == self._keep else -1
        for version in sorted(self._announced.versions(), reverse=True):
            entry = shelf.get(version)
            if version <= floor or version in self._running or (entry and entry.complete):
                continue
            if entry is not None and not entry.checked.is_set():
                continue
            if shelf.gone(version):  # it made room for a newer one, and would only take it back
                continue
            if self._retry.get(version, (0.0, 0.0))[0] <= now:
                # no more than are kept, or the oldest would be fetched to be dropped
                newer = [v for v in {*present, *self._running} if v > version]
                return version if len(newer) < self._keep else None
            if version in self._lacked_room:  # an older one would take what it waits for
                return None
        return None

    def _pull(self, version: int) -> None:
        started = time.monotonic()
        try:
            self._client.download(version, stop=self._stop, changed=self._changed).run()
        except Cancelled:
            logger.debug("version %d: ended with the process", version)
        except PrimeError as error:
            if isinstance(error, DiskFull):
                self._lacked_room.add(version)
                self._client.shelf.evict_oldest(version)
            pause = self._retry.get(version, (0.0, _RETRY_S))[1]
            self._retry[version] = (time.monotonic() + pause, min(2 * pause, _LONGEST_RETRY_S))
            logger.warning("version %d isn't taken: %s", version, error)
            self._client.counters.add("versions_failed_total")
        else:
            seconds = time.monotonic() - started
            logger.info("version %d is whole after %.2f s", version, seconds)
            self._client.counters.add("versions_completed_total")
            self._retry.pop(version, None)
            self._lacked_room.discard(version)
            self._client.shelf.trim()
        finally:
            with self._lock:
                self._running.discard(version)
            self._tell()
