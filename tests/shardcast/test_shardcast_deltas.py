"""Deltas: bit-exact after application, never believed, given up for the whole shard by itself."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardcast_liar import Liar
from shardcast_support import (
    QUICK,
    SHARDS,
    client,
    origin,
    prefer,
    publish,
)

from prime_core.api.errors import IntegrityError
from prime_core.shardcast.deltas import (
    BLOCK,
    QUEUE,
    DeltaReader,
    DeltaShop,
    make_delta,
    planes,
    words,
)
from prime_core.shardcast.library import Span, StoreLibrary
from prime_core.shardcast.server import Limits
from prime_core.store.objects import ObjectStore

ASKING = replace(QUICK, deltas=True)


def spans(folder: Path, new: bytes, base: bytes) -> tuple[Span, Span]:
    (folder / "new").write_bytes(b"--" + new)
    (folder / "base").write_bytes(b"-" + base)
    return Span(folder / "new", 2, len(new)), Span(folder / "base", 1, len(base))


def applied(delta: bytes, base: Span, piece: int) -> bytes:
    taken = bytearray()
    with DeltaReader(base, taken.extend) as reader:
        for start in range(0, len(delta), piece):
            reader.feed(memoryview(delta)[start : start + piece])
        reader.close()
    return bytes(taken)


@given(
    st.integers(1, 3 * BLOCK + 9), st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 5000, 10**6])
)
@settings(max_examples=25, deadline=None)
def test_a_delta_gives_back_every_bit(
    tmp_path_factory: pytest.TempPathFactory, size: int, seed: int, piece: int
) -> None:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, size, np.uint8)
    new = base ^ (rng.random(size) < 0.1) * rng.integers(0, 4, size, np.uint8)
    assert np.array_equal(words(np.frombuffer(planes(new), np.uint8)), new)
    fresh, old = spans(tmp_path_factory.mktemp("delta"), new.tobytes(), base.tobytes())
    delta = make_delta(fresh, old)
    if size > 100:
        assert delta is not None
        assert len(delta) < size
    if delta is not None:
        assert applied(delta, old, max(piece, len(delta) // 200)) == new.tobytes()


def test_what_isnt_a_delta_is_refused_and_never_grows(tmp_path: Path) -> None:
    new, base = bytes(3 * BLOCK), b"\1" * (3 * BLOCK)
    fresh, old = spans(tmp_path, new, base)
    delta = make_delta(fresh, old)
    assert delta is not None
    (tmp_path / "bomb").mkdir()
    longer, short = spans(tmp_path / "bomb", bytes(10**7), bytes(10**7))
    bomb = make_delta(longer, short)
    assert bomb is not None
    for bad in (b"", delta[:-1], delta + b"!", b"x" * 100, bomb):
        with pytest.raises(IntegrityError, match="not a delta"):
            applied(bad, old, 4096)


def test_unlike_versions_have_no_delta_and_the_shop_forgets(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 256, 50_000, np.uint8).tobytes() for _ in range(2)]
    assert make_delta(*spans(tmp_path, *noise)) is None
    shop = DeltaShop(limit=1)
    fresh, old = spans(tmp_path, bytes(BLOCK), b"\1" * BLOCK)
    for index in range(3):
        assert asyncio.run(shop.get((1, 0, index), fresh, old))
    assert list(shop._kept) == [(1, 0, 2)]
    shop.close()


def test_deltas_that_take_long_keep_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, old = spans(tmp_path, bytes(BLOCK), b"\1" * BLOCK)
    may, made = threading.Event(), []

    def slow(new: Span, base: Span) -> bytes | None:
        assert may.wait(60)
        made.append(1)
        return make_delta(new, base)

    monkeypatch.setattr("prime_core.shardcast.deltas.make_delta", slow)

    async def ask() -> None:
        shop = DeltaShop(patience_s=0.2)
        everybody = [(2, base, shard) for base in (0, 1) for shard in range(100)]
        # A stranger asks for all there are, then several clients for the same one.
        found = await asyncio.gather(
            *(shop.get(key, fresh, old) for key in everybody + everybody[:1] * 3)
        )
        assert found == [None] * (len(everybody) + 3)
        may.set()
        for _ in range(6000):
            if not shop._making:
                break
            await asyncio.sleep(0.01)
        assert len(made) == QUEUE, "no more than that waits, each once"
        assert await shop.get(everybody[0], fresh, old), "what was made late is there later"
        shop.close()

    asyncio.run(ask())


def test_a_delta_whose_base_is_collected_is_none(tmp_path: Path) -> None:
    fresh, old = spans(tmp_path, bytes(BLOCK), b"\1" * BLOCK)
    old.path.unlink()

    async def ask() -> None:
        shop = DeltaShop()
        assert await shop.get((1, 0, 0), fresh, old) is None
        assert not shop._kept
        shop.close()

    asyncio.run(ask())


def test_a_client_takes_deltas_where_there_are_and_shards_where_not(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    data = publish(tmp_path / "run", 1)
    limits = Limits(deltas=True)
    with origin(tmp_path / "run", limits=limits) as giving, origin(tmp_path / "run") as plain:
        for url, deltas in ((giving, SHARDS), (plain, 0)):
            one = client([url], tmp_path / f"client-{deltas}", ASKING)
            one.fetch(0)
            assert one.counters["deltas_received_total"] == 0
            assert one.fetch(1).weights.read_bytes() == data
            assert one.counters["deltas_received_total"] == deltas
            assert one.relays[url].lies == 0


def test_a_wrong_delta_is_blamed_and_the_whole_shard_comes(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    data = publish(tmp_path / "run", 1)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    with Liar(library, "wrong delta") as liar, origin(tmp_path / "run") as honest:
        one = client([liar.url, honest], tmp_path / "client", ASKING)
        one.fetch(0)
        prefer(one, liar.url)
        assert one.fetch(1).weights.read_bytes() == data
        assert one.relays[liar.url].lies > 0
        assert one.relays[honest].lies == 0
