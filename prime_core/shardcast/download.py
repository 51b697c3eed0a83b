"""One policy version through relays into a shelf: follow its messages, fetch shards, blame liars.

Relays and clients run a `Download` for each version that they take. It asks for shards while later
ones are still being cut; every byte is hashed as it's written, and what it believes is the
trainer's signature alone.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.shardcast.choosing import Relays
from prime_core.shardcast.connection import (
    Cancelled,
    Connection,
    Patience,
    RelayError,
    RelayLacks,
    RelayLied,
    RelayUnverified,
)
from prime_core.shardcast.connections import Connections
from prime_core.shardcast.counting import Counters
from prime_core.shardcast.flights import Flight, Flights
from prime_core.shardcast.incoming import Incoming
from prime_core.shardcast.landing import Landing, Unclear
from prime_core.shardcast.shelf import Shelf
from prime_core.store.objects import MESSAGE_LIMIT

logger = logging.getLogger(__name__)

_PAUSE_S = 0.05  # after "not yet"; doubles up to the next
_LONG_PAUSE_S = 2.0
_LATE_S, _SILENCE_S = 3.0, 30.0  # messages that late; then others are asked for so long


class VersionFailed(PrimeError):
    """A version that can't be had now; `gone` where no relay has it any more."""

    def __init__(self, what: str, *, gone: bool = False) -> None:
        self.gone = gone
        super().__init__(what, fix="take the next version; it may be tried again later")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a version is fetched.

    Attributes:
        connections: shards under way at once.
        deltas: ask for what changed since a version that is here, before the whole shard.
        stall_s: without a new message or shard for so long, the version is given up.
        wait_s: how long a relay is asked to hold an answer that has nothing new.
    """

    connections: int = 6
    deltas: bool = False
    stall_s: float = 60.0
    wait_s: int = 10
    patience: Patience = field(default_factory=Patience)
    tls: ssl.SSLContext | None = None


class Download:
    """The transfer of one version.

    Args:
        shelf: where it goes; what is there already is kept.
        stop: set from outside, it ends the transfer.
        changed: called when more of the version may be served.
    """

    def __init__(
        self,
        version: int,
        shelf: Shelf,
        relays: Relays,
        settings: Settings,
        counters: Counters,
        *,
        stop: threading.Event | None = None,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self.version = version
        self._shelf, self._relays, self._settings = shelf, relays, settings
        self._counters, self._changed = counters, changed
        self._stop = stop or threading.Event()
        # Two fill a link between two servers; more relays are more links, and the draw that
        # chooses them leaves some idle.
        links = len(relays.addresses)
        self._flights = Flights(2 * links, first=links)
        self._landing = Landing(version, shelf, self._flights, settings.deltas, self._blame)
        self._entry: Incoming | None = None
        self._error: PrimeError | None = None
        self._gone: set[str] = set()
        self._unverified: dict[str, RelayUnverified] = {}
        self._failed: dict[str, float] = {}  # relays not to ask for messages before a second
        self._progress = time.monotonic()
        self._asked = 0  # messages whose shards were handed to the flights

    @property
    def fraction(self) -> float:
        """How much of it is there, from 0 to 1."""
        entry = self._entry
        return entry.done_count / entry.reader.header.shard_count if entry else 0.0

    def run(self) -> Incoming:
        """Fetch until it's complete.

        Raises:
            VersionFailed: no relay gives it, or not fast enough.
            RelayUnverified: none that has it has a certificate that this machine accepts.
            StoreError: this machine's disk can't hold it.
            Cancelled: `stop` was set.
        """
        threads: list[threading.Thread] = []
        try:
            with Connections(self._settings.patience, self._settings.tls) as connections:
                entry = self._begin(connections)
                entry.checked.wait()
                entry.resume()
                for number in range(self._settings.connections):
                    name = f"shards-{self.version}-{number}"
                    threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                    threads[-1].start()
                self._queue(entry)
                while not entry.complete:
                    self._check()
                    self._flights.relieve(self._slower)
                    if entry.reader.sealed:
                        self._stop.wait(0.01)
                    else:
                        with suppress(Cancelled):  # `_check` says why
                            self._follow(connections, entry)
        finally:
            self._flights.end()
            for thread in threads:
                thread.join()
        return entry

    def _begin(self, connections: Connections) -> Incoming:
        entry = self._shelf.get(self.version)
        while entry is None:
            self._check()
            with suppress(Cancelled):
                entry = self._follow(connections, None)
        self._entry = entry
        return entry

    @property
    def _out(self) -> set[str]:
        """Relays that won't give this version, whenever they are asked."""
        return self._gone | self._unverified.keys()

    def _ended(self) -> bool:
        return self._stop.is_set() or self._error is not None

    def _check(self) -> None:
        if self._stop.is_set():
            raise Cancelled
        if self._error is not None:
            raise self._error
        if self._unverified and set(self._relays.addresses) <= self._out:
            raise next(iter(self._unverified.values()))
        if self._gone and self._gone.issuperset(self._relays.addresses):
            raise VersionFailed(f"version {self.version}: every relay has collected it", gone=True)
        if time.monotonic() - self._progress > self._settings.stall_s:
            what = "nothing new" if self._entry else "no relay has had it"
            raise VersionFailed(
                f"version {self.version}: {what} for {self._settings.stall_s:.0f} s"
            )

    def _follow(self, connections: Connections, entry: Incoming | None) -> Incoming | None:
        """Ask one relay for what follows the last message, and take it in."""
        now = time.monotonic()
        failed = {each for each, until in self._failed.items() if until > now}
        address = self._relays.choose(self._out | failed)
        if address is None:
            self._stop.wait(_PAUSE_S)
            return entry
        known = len(entry.reader.messages) if entry else 0
        # A short wait where others could be asked: this one may know less than they do.
        others = len(self._relays.addresses) > 1
        wait = min(self._settings.wait_s, 2 if others else 60)
        late = min(_LATE_S, self._settings.patience.connect_s) if others else None
        target = f"/policies/{self.version:06d}/manifest?from={known}&wait={wait}"
        try:
            body = connections[address].get(
                target, MESSAGE_LIMIT + 1, wait_s=wait, late_s=late, cancelled=self._ended
            )
            if not body:  # it knows no more than we do: somebody else may
                self._failed[address] = time.monotonic() + _PAUSE_S
            for message in body.splitlines():
                if entry is None:
                    entry = self._shelf.begin(message, self.version)
                    self._entry = entry
                elif not entry.reader.sealed:
                    entry.feed(message)
                self._progress = time.monotonic()
        except (FormatError, IntegrityError) as error:
            self._blame(address, error)
        except RelayError as error:
            self._note(address, error)
            pause = _PAUSE_S if isinstance(error, RelayLacks) else _LONG_PAUSE_S
            if others and isinstance(error.__cause__, TimeoutError):
                pause = _SILENCE_S
            self._failed[address] = time.monotonic() + pause
        if entry is not None:
            self._queue(entry)
            self._tell()
        return entry

    def _queue(self, entry: Incoming) -> None:
        for shard in entry.reader.shards[self._asked :]:
            self._asked += 1
            if not entry.has(shard.index):
                self._flights.add(shard.index, shard.size)

    def _work(self) -> None:
        with Connections(self._settings.patience, self._settings.tls) as connections:
            while (flight := self._flights.take(self._slower)) is not None:
                avoided = flight.avoided(time.monotonic())
                address = self._relays.choose(self._out | avoided)
                if address is None:
                    self._flights.back(flight)
                    self._stop.wait(_PAUSE_S / 2)
                    continue
                try:
                    self._fetch(connections[address], flight)
                except Cancelled:
                    came, took = flight.received - flight.start, time.monotonic() - flight.since
                    self._relays.measured(address, came, took)
                    self._landing.cancelled(flight)
                    self._flights.back(flight)
                except Unclear:
                    self._flights.back(flight)
                except (RelayError, IntegrityError) as error:
                    if isinstance(error, RelayError):
                        self._note(address, error)
                    else:
                        self._blame(address, error)
                    pause = _PAUSE_S if isinstance(error, RelayLacks) else _LONG_PAUSE_S
                    flight.avoid[address] = time.monotonic() + pause
                    flight.whole, flight.front = True, None
                    self._flights.back(flight)
                except StoreError as error:
                    self._error = error
                    self._flights.back(flight)
                    return
                else:
                    self._flights.landed(flight)
                    self._tell()

    def _fetch(self, connection: Connection, flight: Flight) -> None:
        assert self._entry is not None
        count, delta = self._landing.fetch(self._entry, connection, flight)
        self._progress = time.monotonic()
        self._relays.succeeded(connection.address, count, self._progress - flight.since)
        self._counters.add("shards_received_total")
        self._counters.add("shard_bytes_received_total", flight.size)
        if delta:
            self._counters.add("deltas_received_total")

    def _slower(self, flight: Flight, left_s: float) -> Collection[str] | None:
        assert flight.address is not None
        rest = flight.size - flight.received
        return self._relays.slower(flight.address, rest, left_s, self._out | flight.taken_from)

    def _note(self, address: str, error: RelayError) -> None:
        if isinstance(error, RelayLied):
            self._blame(address, error)
        elif isinstance(error, RelayLacks):
            if error.gone:
                self._gone.add(address)
        else:
            if isinstance(error, RelayUnverified):
                self._unverified[address] = error
            self._relays.failed(address)
            self._counters.add("transfers_broken_total")
            logger.info("version %d: %s", self.version, error)

    def _blame(self, address: str, error: PrimeError) -> None:
        self._relays.lied(address)
        self._counters.add("lies_total")
        logger.warning("version %d: relay %s is left out: %s", self.version, address, error)

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed()
