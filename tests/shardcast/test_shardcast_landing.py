"""A shard of two relays: it counts where it's right; where it isn't, the liar is found out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shardcast_liar import Liar
from shardcast_support import RUN, SHARD, SIGNER, origin, publish

from prime_core.api.errors import IntegrityError, PrimeError
from prime_core.shardcast.connection import Cancelled, Connection, RelayError, RelayLied
from prime_core.shardcast.flights import Flight, Flights
from prime_core.shardcast.incoming import Incoming
from prime_core.shardcast.landing import Landing, Unclear
from prime_core.shardcast.library import StoreLibrary
from prime_core.shardcast.shelf import Shelf
from prime_core.store.objects import ObjectStore

WRONG = bytes(SHARD)


class Relay:
    """A connection to a relay that gives `data`, and is taken over after `until` bytes."""

    def __init__(self, address: str, data: bytes, until: int | None = None) -> None:
        self.address, self._data, self._until = address, data, until
        self.asked: list[int] = []

    def get_into(
        self,
        target: str,
        size: int,
        take: Callable[[memoryview], None],
        cancelled: Callable[[], bool],
        *,
        start: int = 0,
    ) -> None:
        self.asked.append(start)
        assert size == SHARD - start
        take(memoryview(self._data)[start : self._until])
        if self._until is not None:
            raise Cancelled


class World:
    """A version of which a shard is on its way."""

    def __init__(self, folder: Path) -> None:
        self.right = publish(folder / "run", 0)[:SHARD]
        library = StoreLibrary(ObjectStore(str(folder / "run")))
        library.refresh()
        messages = library.messages(0, 0)
        assert messages is not None
        shelf = Shelf(folder / "shelf", SIGNER.address, RUN)
        self.entry: Incoming = shelf.begin(messages[0], 0)
        self.entry.feed(messages[1])
        self.blamed: list[str] = []
        self.flights = Flights()
        self.landing = Landing(0, shelf, self.flights, False, self._blame)
        self.flights.add(0, SHARD)
        self.flight = self._take()

    def _blame(self, address: str, error: PrimeError) -> None:
        self.blamed.append(address)

    def _take(self) -> Flight:
        flight = self.flights.take(lambda flight, left_s: None)
        assert flight is not None
        return flight

    def fetch(self, relay: Relay) -> None:
        try:
            self.landing.fetch(self.entry, relay, self.flight)  # type: ignore[arg-type]
        except Cancelled:
            self.flight.taken_from.add(relay.address)
            self.landing.cancelled(self.flight)
            self.flights.back(self.flight)
            assert self._take() is self.flight
        except Unclear:
            self.flights.back(self.flight)
            assert self._take() is self.flight
            raise


def test_a_shard_that_is_taken_over_goes_on_where_it_was(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fetch(Relay("slow", world.right, 1000))
    fast = Relay("fast", world.right)
    world.fetch(fast)
    assert fast.asked == [1000]
    assert world.entry.has(0)
    assert world.blamed == []


def test_a_shard_that_is_taken_over_again_comes_whole(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fetch(Relay("slow", WRONG, 1000))
    world.fetch(Relay("slow too", WRONG, 2000))
    fast = Relay("fast", world.right)
    world.fetch(fast)
    assert fast.asked == [0], "of three relays nobody could say who lied"
    assert world.entry.has(0)
    assert world.blamed == []


@pytest.mark.parametrize(("liar", "again"), [("front", "rest"), ("rest", "front")])
def test_who_spoilt_a_shard_of_two_is_known_once_the_right_one_is_there(
    tmp_path: Path, liar: str, again: str
) -> None:
    world = World(tmp_path)
    gives = {name: WRONG if name == liar else world.right for name in ("front", "rest")}
    world.fetch(Relay("front", gives["front"], 1000))
    with pytest.raises(Unclear):
        world.fetch(Relay("rest", gives["rest"]))
    assert world.blamed == []
    assert not world.entry.has(0)
    honest = Relay(again, world.right)
    world.fetch(honest)
    assert honest.asked == [0], "it comes whole from one relay"
    assert world.entry.has(0)
    assert world.blamed == [liar]


def test_a_liar_that_is_asked_again_for_all_of_it_is_blamed_for_that(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fetch(Relay("liar", WRONG, 1000))
    with pytest.raises(Unclear):
        world.fetch(Relay("honest", world.right))
    with pytest.raises(IntegrityError):
        world.fetch(Relay("liar", WRONG))


def test_one_relay_that_gave_both_parts_is_blamed_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fetch(Relay("liar", WRONG, 1000))
    with pytest.raises(IntegrityError):
        world.fetch(Relay("liar", world.right))


def test_a_connection_asks_for_the_rest_of_a_shard(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as url, Connection(url) as connection:
        taken = bytearray()
        target = "/policies/000000/shard-00001.bin"
        connection.get_into(target, SHARD - 100, taken.extend, start=100)
        assert taken == data[SHARD + 100 : 2 * SHARD]
        with pytest.raises(RelayLied):
            connection.get_into(target, SHARD, taken.extend, start=100)


def test_a_relay_without_ranges_fails_and_is_no_liar(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    with Liar(library, "none") as plain, Connection(plain.url) as connection:
        with pytest.raises(RelayError) as caught:
            connection.get_into("/policies/000000/shard-00001.bin", 10, lambda _: None, start=100)
        assert not isinstance(caught.value, RelayLied)
