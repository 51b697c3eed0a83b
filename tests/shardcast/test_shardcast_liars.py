"""Relays that lie or fail in every way we thought of: the version comes, and only the right one."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from shardcast_liar import Liar
from shardcast_support import (
    OTHER,
    QUICK,
    SHARDS,
    SIGNER,
    SlowTrainer,
    client,
    origin,
    prefer,
    publish,
    relay,
    until,
)

from prime_core.shardcast.connection import Patience
from prime_core.shardcast.download import VersionFailed
from prime_core.shardcast.fetching import fetch_version
from prime_core.shardcast.library import StoreLibrary
from prime_core.shardcast.listening import Announcements
from prime_core.store.objects import ObjectStore

LIES = (
    "wrong bytes",
    "wrong size",
    "error page",
    "error page for shards",
    "stale version",
    "forged manifest",
    "endless manifest",
    "endless body",
)
FAULTS = ("head bomb", "redirect", "breaks off", "trickle", "silence")
IMPATIENT = replace(
    QUICK, patience=Patience(0.5, least_bytes_per_s=1000.0, window_s=0.3), connections=2
)


def library(folder: Path) -> StoreLibrary:
    found = StoreLibrary(ObjectStore(str(folder)))
    found.refresh()
    return found


@pytest.mark.parametrize("kind", [*LIES, *FAULTS])
def test_a_version_comes_past_a_relay_that_lies_or_fails(kind: str, tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    data = publish(tmp_path / "run", 1)
    with Liar(library(tmp_path / "run"), kind) as liar, origin(tmp_path / "run") as honest:
        one = client([liar.url, honest], tmp_path / "client", IMPATIENT)
        prefer(one, liar.url)
        entry = one.fetch(1)
        assert entry.weights.read_bytes() == data
        assert liar.asked
        assert (one.relays[liar.url].lies > 0) == (kind in LIES)
        assert one.relays[honest].lies == 0
        if kind in LIES:
            assert one.relays.banned() == [liar.url]
        else:
            assert one.relays[liar.url].success < 1


@pytest.mark.parametrize("others", [1, 3])
def test_slow_relays_stop_no_version_while_a_fast_one_stands_by(
    others: int, tmp_path: Path
) -> None:
    """More than the least they give, so that every connection would stay with them."""
    publish(tmp_path / "run", 0)
    data = publish(tmp_path / "run", 1)
    with ExitStack() as stack:
        fast = stack.enter_context(origin(tmp_path / "run"))
        liars = [Liar(library(tmp_path / "run"), "trickle") for _ in range(others)]
        slow = [stack.enter_context(each).url for each in liars]
        one = client([*slow, fast], tmp_path / "client", replace(QUICK, connections=2))
        prefer(one, fast)
        for address in slow:  # they were quick when they were measured
            one.relays[address].bandwidth = 1e15
        one.relays[fast].bandwidth = 1e6
        assert one.fetch(1).weights.read_bytes() == data
        assert one.relays.banned() == []
        found = [one.relays[address].bandwidth or 0.0 for address in slow]
        assert min(found) < 1e15, "what one gave until it was left counts"


@pytest.mark.parametrize("kind", [*LIES, "redirect", "breaks off"])
def test_a_liar_alone_gives_nothing(kind: str, tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    publish(tmp_path / "run", 1)
    with Liar(library(tmp_path / "run"), kind) as liar:
        one = client([liar.url], tmp_path / "client", replace(IMPATIENT, stall_s=0.3))
        with pytest.raises(VersionFailed):
            one.fetch(1)
    assert one.shelf.whole() == []
    assert not (tmp_path / "client/policies/000001/weights.safetensors").exists()


def test_versions_of_another_key_or_run_are_refused(tmp_path: Path) -> None:
    publish(tmp_path / "key", 0, signer=OTHER)
    publish(tmp_path / "run", 0, run="another")
    for name in ("key", "run"):
        with origin(tmp_path / name) as url:
            one = client([url], tmp_path / f"client-{name}", replace(QUICK, stall_s=0.3))
            with pytest.raises(VersionFailed):
                one.fetch(0)
            assert one.relays[url].lies == 1


def test_two_origins_of_one_key_give_one_version_or_the_other_never_a_mixture(
    tmp_path: Path,
) -> None:
    versions = {publish(tmp_path / name, 0, fill=fill) for name, fill in (("a", 1), ("b", 2))}
    with origin(tmp_path / "a") as a, origin(tmp_path / "b") as b:
        for attempt in range(4):
            one = client([a, b], tmp_path / f"client-{attempt}")
            assert one.fetch(0).weights.read_bytes() in versions


def test_an_origin_with_another_key_is_left_out(tmp_path: Path) -> None:
    data = publish(tmp_path / "a", 0)
    publish(tmp_path / "b", 0, signer=OTHER, fill=9)
    with origin(tmp_path / "a") as a, origin(tmp_path / "b") as b:
        one = client([a, b], tmp_path / "client")
        prefer(one, b)
        assert one.fetch(0).weights.read_bytes() == data
        assert one.relays.banned() == [b]
        assert SIGNER.address != OTHER.address


def test_versions_that_nobody_signed_keep_nobody_busy(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    data = publish(tmp_path / "run", 1)
    with Liar(library(tmp_path / "run"), "phantom versions") as liar, ExitStack() as stack:
        honest = stack.enter_context(origin(tmp_path / "run"))
        url, shelf = stack.enter_context(relay([liar.url, honest], tmp_path / "relay"))
        until(lambda: shelf.whole() == [0, 1])
        one = client([liar.url, url], tmp_path / "client")
        assert fetch_version(one, None).weights.read_bytes() == data
        assert one.versions() == {0: True, 1: True}
        assert one.relays[liar.url].lies > 0


def test_a_listing_that_comes_at_once_is_asked_for_now_and_then(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    with Liar(library(tmp_path / "run"), "honest, but waits for nothing") as liar:
        one = client([liar.url], tmp_path / "client")
        announced = Announcements(one)
        announced.start()
        until(lambda: len(liar.asked) > 2)
        before = len(liar.asked)
        time.sleep(1.0)
        announced.close()
        assert announced.versions() == {0}
        assert len(liar.asked) - before < 20


def test_a_relay_that_is_silent_about_lines_is_asked_once(tmp_path: Path) -> None:
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    kind = "silence for messages"
    with origin(tmp_path / "run") as honest, Liar(library(tmp_path / "run"), kind) as liar:
        one = client([liar.url, honest], tmp_path / "client", IMPATIENT)
        prefer(one, liar.url)
        download = one.download(0)
        thread = threading.Thread(target=download.run)
        thread.start()
        for shards in range(1, SHARDS):
            trainer.go_on(2 if shards == 1 else 1)
            until(lambda count=shards: download.fraction == count / SHARDS)
        trainer.finish()
        thread.join()
        assert one.shelf.whole() == [0]
        assert len([target for target in liar.asked if "/manifest" in target]) == 1
