"""Whose a directory of versions is: what a relay or client leaves alone, and what it takes in."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from shardcast_support import (
    OTHER,
    QUICK,
    RUN,
    SHARD,
    SHARDS,
    SIGNER,
    client,
    origin,
    publish,
    relay,
    until,
)

from prime_core.api.errors import StoreError
from prime_core.shardcast import folder
from prime_core.shardcast.client import Client
from prime_core.shardcast.fetching import fetch_version
from prime_core.shardcast.folder import held
from prime_core.shardcast.incoming import Incoming
from prime_core.shardcast.relay import Puller
from prime_core.shardcast.shelf import Shelf
from prime_core.store import layout

SIZE = SHARD * SHARDS


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("other", ["signer", "run"])
def test_a_directory_of_another_signer_or_run_is_refused_and_stays_as_it_is(
    other: str, tmp_path: Path
) -> None:
    signer, run = (OTHER, RUN) if other == "signer" else (SIGNER, "another")
    for version in range(3):
        publish(tmp_path / "theirs", version, signer=signer, run=run)
    publish(tmp_path / "run", 0)
    before = everything(tmp_path / "theirs")
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "theirs")
        with pytest.raises(StoreError, match=f"another {other}") as caught:
            fetch_version(one, 0)
        assert "--dir" in str(caught.value)
        with pytest.raises(StoreError, match=f"another {other}"):
            Puller(one, 5, lambda: None).start()
    after = everything(tmp_path / "theirs")
    assert {path: data for path, data in after.items() if path.name != ".lock"} == before


def test_a_directory_that_holds_a_run_is_never_touched(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    (tmp_path / "run/run.toml").write_text("")
    before = everything(tmp_path / "run")
    with origin(tmp_path / "run") as url, pytest.raises(StoreError, match="holds a run") as caught:
        fetch_version(client([url], tmp_path / "run"), 0)
    assert "choose another --dir" in str(caught.value)
    assert everything(tmp_path / "run") == before


def test_a_version_with_files_that_no_relay_made_is_refused(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    (tmp_path / "copy/policies/000000/weights.safetensors").rename(
        tmp_path / "copy/policies/000000/shard-00000.bin"
    )
    before = everything(tmp_path / "copy")
    shelf = Shelf(tmp_path / "copy", SIGNER.address, RUN)
    with pytest.raises(StoreError, match=r"shard-00000\.bin"):
        shelf.recover()
    assert everything(tmp_path / "copy") == before


def test_a_directory_serves_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "run", 0)
    monkeypatch.setattr(folder, "PATIENCE_S", 0.1)
    with origin(tmp_path / "run") as url:
        with held(tmp_path / "client"):
            with pytest.raises(StoreError, match="another process") as caught:
                fetch_version(client([url], tmp_path / "client"), 0)
            assert "--dir" in str(caught.value)
        monkeypatch.setattr(folder, "PATIENCE_S", 60.0)
        before = held(tmp_path / "client")
        before.__enter__()
        ends = threading.Timer(0.3, before.__exit__, (None, None, None))
        ends.start()  # as one that was killed may take a moment to be gone
        assert fetch_version(client([url], tmp_path / "client"), 0).complete
        ends.join()


def test_a_relay_that_comes_back_fetches_nothing_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(7):
        publish(tmp_path / "run", version)
    with origin(tmp_path / "run") as up:
        with relay([up], tmp_path / "relay", keep=3) as (_, shelf):
            until(lambda: shelf.whole() == [4, 5, 6])
        again = Shelf(tmp_path / "relay", SIGNER.address, RUN, keep=3, budget=3 * SIZE)
        one = Client([up], again, settings=QUICK)
        puller = Puller(one, 3, lambda: None)
        heard, recover = threading.Event(), Shelf.recover

        def late(shelf: Shelf, *arguments: object) -> None:
            """What is there is hashed only after the upstream has listed all of it."""
            until(lambda: puller._announced.versions() >= set(range(7)))
            until(lambda: puller._next() is None)
            heard.set()
            recover(shelf, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Shelf, "recover", late)
        puller.start()
        assert again.used() > 2 * SIZE, "what lies there counts from the start"
        until(lambda: heard.is_set() and again.whole() == [4, 5, 6])
        puller.close()
        assert one.counters["shards_received_total"] == 0
        assert one.counters["versions_held"] == 3, "told though nothing was fetched"


def test_a_recovery_ends_with_the_process_and_drops_nothing(tmp_path: Path) -> None:
    for version in range(2):
        publish(tmp_path / "run", version)
    with origin(tmp_path / "run") as up, relay([up], tmp_path / "relay") as (_, shelf):
        until(lambda: shelf.whole() == [0, 1])
    stop = threading.Event()
    stop.set()
    again = Shelf(tmp_path / "relay", SIGNER.address, RUN)
    again.recover(stop)
    assert again.whole() == []
    assert (tmp_path / "relay" / layout.policy_seal_path(1)).exists()
    entry = again.get(1)
    assert entry is not None
    assert entry.checked.is_set(), "whoever waits for it must not wait for ever"


def test_a_recovery_ends_after_the_shard_that_is_being_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as up:
        client([up], tmp_path / "client").fetch(0)
    stop, hashed, real = threading.Event(), [], Incoming._hash

    def hash_then_stop(entry: Incoming, file: object, index: int, size: int) -> bytes:
        hashed.append(index)
        if index == 2:
            stop.set()
        return real(entry, file, index, size)  # type: ignore[arg-type]

    monkeypatch.setattr(Incoming, "_hash", hash_then_stop)
    again = Shelf(tmp_path / "client", SIGNER.address, RUN)
    again.recover(stop)
    assert hashed == [0, 1, 2]
    assert again.whole() == []
    assert (tmp_path / "client" / layout.policy_weights_path(0)).exists()


def test_bytes_after_a_files_end_are_never_passed_as_checked(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as url:
        held_file = fetch_version(client([url], tmp_path / "client"), 0).weights
        with held_file.open("ab") as file:
            file.write(b"junkjunk!")
        assert fetch_version(client([url], tmp_path / "client"), 0).weights.read_bytes() == data


def test_a_version_that_goes_takes_nothing_else_with_it(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client")
        directory = one.fetch(0).directory
        (directory / "notes.txt").write_text("mine")
        (directory / "more").mkdir()
        one.shelf.drop(0)
    assert sorted(path.name for path in directory.iterdir()) == ["more", "notes.txt"]
    assert (directory / "notes.txt").read_text() == "mine"


def test_nobody_waits_for_a_recovery_that_failed(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as up:
        with relay([up], tmp_path / "relay") as (_, shelf):
            until(lambda: shelf.whole() == [0])
        (tmp_path / "relay" / layout.policy_weights_path(0)).write_bytes(data[:-1] + b"!")
        again = Shelf(tmp_path / "relay", SIGNER.address, RUN)
        again.find()
        entry = again.get(0)
        assert entry is not None
        again.recover()
        assert entry.checked.is_set()
        assert again.get(0) is None
