"""One shard's bytes from a relay into a version's file, and who lied where two relays gave them.

`download`'s threads call `Landing.fetch`; every byte is hashed as it's written. A shard that was
taken over has bytes of two relays: where they make a wrong one, the right one, once it has come
from a single relay, says whose they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from prime_core.api.errors import IntegrityError, PrimeError
from prime_core.shardcast.connection import Connection
from prime_core.shardcast.deltas import take_delta
from prime_core.shardcast.flights import Flight, Flights, Part
from prime_core.shardcast.incoming import Incoming
from prime_core.shardcast.library import Span
from prime_core.shardcast.shelf import Shelf


class Unclear(Exception):
    """A wrong shard of two relays' bytes: it comes again from one, and then it's known who lied."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Fetches shards of one version.

    Attributes:
        deltas: ask for what changed since a version that is here, before the whole shard.
        blame: told which relay lied, and how.
    """

    version: int
    shelf: Shelf
    flights: Flights
    deltas: bool
    blame: Callable[[str, PrimeError], None]

    def fetch(self, entry: Incoming, connection: Connection, flight: Flight) -> tuple[int, bool]:
        """The rest of a shard from one relay; how many bytes it was, and whether as a delta.

        Raises:
            Cancelled: somebody takes it over.
            Unclear: the front is another relay's, and the whole is wrong.
            IntegrityError: this relay gave other bytes.
            RelayError, StoreError: as `Connection.get_into` and `Incoming.write`.
        """

        def take(data: memoryview) -> None:
            flight.digest.update(data)
            entry.write(flight.index, flight.received, data)
            self.flights.advance(flight, len(data))

        def over() -> bool:
            return flight.cancelled

        entry.reserve(flight.index)
        flight.since, flight.address = time.monotonic(), connection.address
        target = f"/policies/{self.version:06d}/shard-{flight.index:05d}"
        base = self._base(flight)
        delta = base is not None and take_delta(
            connection, f"{target}.delta-{base[0]:06d}", base[1], take, over
        )
        count = flight.size - flight.received
        if not delta:
            connection.get_into(f"{target}.bin", count, take, over, start=flight.received)
        self._judge(entry, flight, connection.address)
        return (flight.size if delta else count), delta

    def cancelled(self, flight: Flight) -> None:
        """Keep what a transfer has brought that is taken over; of two relays' bytes at most."""
        joinable = (
            flight.address in flight.taken_from and flight.doubt is None and flight.front is None
        )
        flight.front = None
        if joinable and 0 < flight.received < flight.size:
            assert flight.address is not None
            flight.front = Part(flight.address, flight.received, flight.digest.digest())

    def _judge(self, entry: Incoming, flight: Flight, address: str) -> None:
        front = flight.front
        try:
            entry.mark(flight.index, flight.digest.digest())
        except IntegrityError as error:
            if front is None or front.address == address:
                raise
            flight.doubt, flight.front = (front, address), None
            raise Unclear from error
        if flight.doubt is not None:
            front, other = flight.doubt
            honest = entry.hash_front(flight.index, front.size) == front.digest
            self.blame(
                other if honest else front.address,
                IntegrityError(f"its part of shard {flight.index} was another"),
            )

    def _base(self, flight: Flight) -> tuple[int, Span] | None:
        """The newest older version that is whole here, and this shard of it."""
        older = [v for v in self.shelf.whole() if v < self.version]
        if not self.deltas or not older or flight.whole or flight.received:
            return None
        span = self.shelf.span(older[-1], flight.index)
        return None if span is None or span.size != flight.size else (older[-1], span)
