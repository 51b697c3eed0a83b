"""Origin, relays and clients while things happen: cut-through, kills, full disks, collection."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from shardcast_support import (
    QUICK,
    RUN,
    SHARD,
    SHARDS,
    SIGNER,
    SlowTrainer,
    client,
    origin,
    publish,
    relay,
    until,
)

from prime_core.api.errors import StoreError
from prime_core.config.sections import RunConfig
from prime_core.run.tree import tree
from prime_core.shardcast import weights_file
from prime_core.shardcast.connection import Cancelled
from prime_core.shardcast.download import VersionFailed
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import fetch_policy, read_seal, sealed_versions


def test_shards_pass_three_relays_before_the_version_is_whole(tmp_path: Path) -> None:
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    with ExitStack() as stack:
        url = stack.enter_context(origin(tmp_path / "run"))
        for depth in range(3):
            url, _ = stack.enter_context(relay([url], tmp_path / f"relay-{depth}"))
        one = client([url], tmp_path / "client")
        download = one.download(0)
        thread = threading.Thread(target=download.run)
        thread.start()
        try:
            for shards in range(1, 4):
                trainer.go_on(2 if shards == 1 else 1)
                until(lambda count=shards: download.fraction == count / SHARDS)
                assert one.shelf.whole() == []
        finally:
            trainer.finish()
            thread.join()
        assert one.shelf.whole() == [0]
        store = ObjectStore(str(tmp_path / "client"))
        assert sealed_versions(store) == [0]
        files = fetch_policy(store, 0, tmp_path, tmp_path / "cache", signer_address=SIGNER.address)
        assert files.weights[0].read_bytes() == trainer.data
        used = sum(f.stat().st_blocks * 512 for f in (tmp_path / "client").rglob("*.safetensors"))
        assert used <= SHARD * SHARDS + 4096, "disk use is once the file"


def test_an_origin_that_dies_and_comes_back_finishes_the_version(tmp_path: Path) -> None:
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    trainer.go_on(4)
    with ExitStack() as stack:
        up = stack.enter_context(ExitStack())
        first = up.enter_context(origin(tmp_path / "run"))
        port = int(first.rpartition(":")[2])
        url, shelf = stack.enter_context(relay([first], tmp_path / "relay"))
        until(lambda: [each.messages for each in shelf.listing()] == [4])
        up.close()
        trainer.finish()
        stack.enter_context(origin(tmp_path / "run", port=port))
        assert client([url], tmp_path / "client").fetch(0).weights.read_bytes() == trainer.data


def test_a_relay_that_dies_serves_what_it_had_and_takes_the_rest(tmp_path: Path) -> None:
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    data = publish(tmp_path / "whole", 0)
    with origin(tmp_path / "run") as up:
        trainer.go_on(5)
        with relay([up], tmp_path / "relay") as (_, shelf):
            until(lambda: [each.messages for each in shelf.listing()] == [5])
        with relay([up], tmp_path / "relay") as (url, shelf):
            until(lambda: [each.messages for each in shelf.listing()] == [5])
            trainer.finish()
            until(lambda: shelf.whole() == [0])
    # With no upstream at all it still serves.
    with relay(["http://127.0.0.1:9"], tmp_path / "relay") as (url, shelf):
        until(lambda: shelf.whole() == [0])
        assert client([url], tmp_path / "client").fetch(0).weights.read_bytes() == data


def test_a_damaged_file_of_an_earlier_life_is_never_served(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as up:
        with relay([up], tmp_path / "relay") as (_, shelf):
            until(lambda: shelf.whole() == [0])
        held = tmp_path / "relay" / layout.policy_weights_path(0)
        held.write_bytes(data[:-1] + b"!")
        with relay(["http://127.0.0.1:9"], tmp_path / "relay") as (_, shelf):
            until(lambda: not held.exists())
            assert shelf.listing() == []
        with relay([up], tmp_path / "relay") as (_, shelf):
            until(lambda: shelf.whole() == [0])
            assert held.read_bytes() == data


def test_a_client_that_was_killed_goes_on_from_its_shards(tmp_path: Path) -> None:
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    trainer.go_on(6)
    with origin(tmp_path / "run") as url:
        stop = threading.Event()
        one = client([url], tmp_path / "client")
        download = one.download(0, stop=stop)
        ended: list[BaseException] = []

        def run() -> None:
            try:
                download.run()
            except Cancelled as error:
                ended.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: download.fraction == 5 / SHARDS)
        stop.set()
        thread.join()
        assert ended
        trainer.finish()
        again = client([url], tmp_path / "client")
        again.shelf.recover()
        assert again.fetch(0).weights.read_bytes() == trainer.data
        assert again.counters["shards_received_total"] == SHARDS - 5


def test_a_version_that_was_collected_in_mid_download_is_given_up(tmp_path: Path) -> None:
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    trainer.finish()
    data = publish(tmp_path / "scratch", 1)
    held = tmp_path / "run" / layout.policy_weights_path(0)
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client", replace(QUICK, connections=1))
        write = one.shelf.begin

        def begin_then_collect(*args: object) -> object:
            entry = write(*args)  # type: ignore[arg-type]
            held.unlink()
            return entry

        one.shelf.begin = begin_then_collect  # type: ignore[method-assign, assignment]
        with pytest.raises(VersionFailed) as caught:
            one.fetch(0)
        assert caught.value.gone
        one.shelf.begin = write  # type: ignore[method-assign]
        (tmp_path / "scratch/policies/000001").rename(tmp_path / "run/policies/000001")
        assert one.fetch(1).weights.read_bytes() == data


def test_a_relay_keeps_the_newest_versions(tmp_path: Path) -> None:
    for version in range(7):
        publish(tmp_path / "run", version)
    with origin(tmp_path / "run") as up, relay([up], tmp_path / "relay", keep=3) as (url, shelf):
        until(lambda: shelf.whole() == [4, 5, 6])
        publish(tmp_path / "run", 7)
        until(lambda: shelf.whole() == [5, 6, 7])
        assert sorted(p.name for p in (tmp_path / "relay/policies").iterdir()) == [
            "000005",
            "000006",
            "000007",
        ]
        one = client([url], tmp_path / "client")
        assert one.versions() == {5: True, 6: True, 7: True}
        with pytest.raises(VersionFailed):
            one.fetch(2)


def test_a_disk_budget_is_never_exceeded(tmp_path: Path) -> None:
    budget = 2 * SHARD * SHARDS + 100
    for version in range(4):
        publish(tmp_path / "run", version)
    most = 0
    with (
        origin(tmp_path / "run") as up,
        relay([up], tmp_path / "relay", budget=budget) as (_, shelf),
    ):

        def full() -> bool:
            nonlocal most
            most = max(most, shelf.used())
            return shelf.whole() == [2, 3]

        until(full)
        publish(tmp_path / "run", 4)
        until(lambda: shelf.whole() == [3, 4])
        assert max(most, shelf.used()) <= budget
    small = client(["http://127.0.0.1:9"], tmp_path / "client", budget=1000)
    header = (tmp_path / "run" / layout.policy_header_path(4)).read_bytes()
    with pytest.raises(StoreError, match="the budget is 1000"):
        small.shelf.begin(header, 4)


def test_a_full_disk_costs_a_relay_old_versions_and_a_client_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "run", 0)
    publish(tmp_path / "run", 1)
    limit = [1]

    def free(file: int) -> int:
        full = len(list((tmp_path / "client/policies").iterdir())) > limit[0]
        return 0 if full else 10**9

    def fail(*args: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client")
        monkeypatch.setattr(weights_file, "free_bytes", free)
        one.fetch(0)
        one.fetch(1)
        assert one.shelf.whole() == [1], "the oldest made room"
        limit[0] = 0
        with pytest.raises(StoreError, match="No space left"):
            client([url], tmp_path / "client").fetch(1)
        # Somebody else filled the disk after the version was begun.
        monkeypatch.setattr(weights_file, "free_bytes", lambda file: 10**9)
        monkeypatch.setattr(os, "posix_fallocate", fail)
        with pytest.raises(StoreError, match="No space left"):
            client([url], tmp_path / "another").fetch(1)


def test_a_relay_whose_disk_fills_in_mid_transfer_drops_old_versions_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "run", 0)
    reserve = os.posix_fallocate

    def reserve_one(file: int, offset: int, size: int) -> None:
        if len(list((tmp_path / "relay/policies").iterdir())) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(file, offset, size)

    with origin(tmp_path / "run") as up, relay([up], tmp_path / "relay") as (url, shelf):
        until(lambda: shelf.whole() == [0])
        monkeypatch.setattr(os, "posix_fallocate", reserve_one)
        data = publish(tmp_path / "run", 1)
        until(lambda: shelf.whole() == [1])
        monkeypatch.setattr(os, "posix_fallocate", reserve)
        assert client([url], tmp_path / "client").fetch(1).weights.read_bytes() == data


def test_clocks_dont_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = publish(tmp_path / "run", 0)
    skew = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: 1e9 * (-1) ** next(skew))
    with origin(tmp_path / "run") as up, relay([up], tmp_path / "relay") as (url, _):
        assert client([url], tmp_path / "client").fetch(0).weights.read_bytes() == data


def test_a_version_above_the_limit_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client", replace(QUICK, stall_s=0.3), max_bytes=1000)
        with pytest.raises(VersionFailed):
            one.fetch(0)
    assert not (tmp_path / "client/policies").exists()
    assert read_seal(ObjectStore(str(tmp_path / "run")), 0)


def test_a_runs_relays_keep_what_a_large_lag_needs(tmp_path: Path) -> None:
    def kept(**sections: dict[str, object]) -> list[str]:
        run_dir = tmp_path / "run"
        (run_dir / "keys").mkdir(parents=True, exist_ok=True)
        if not (run_dir / "keys/trainer.key").exists():
            Signer.create(run_dir / "keys/trainer.key")
        raw = {"run": {"dir": str(run_dir), "id": RUN}, "model": {"path": str(run_dir)}}
        raw |= {"environments": [{"use": "arithmetic"}], **sections}  # type: ignore[dict-item]
        config = RunConfig.model_validate(
            {**raw, "shardcast": {"mode": "tree", **raw["shardcast"]}}
        )
        relay = next(child for child in tree(config) if child.name == "relay-0")
        return relay.arguments[relay.arguments.index("--keep") :][1:2]

    assert kept(shardcast={"mode": "tree"}) == ["5"]
    lag: dict[str, dict[str, object]] = {"async": {"level": 9}, "store": {"keep_policies": 12}}
    assert kept(shardcast={"mode": "tree"}, **lag) == ["11"]
    assert kept(shardcast={"mode": "tree", "keep": 13}, **lag) == ["13"]
