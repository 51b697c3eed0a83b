"""Versions as one linked file, and manifests that are read while they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_store_policy import OTHER, PARENT, SIGNER, WEIGHTS, weights_bytes

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.partial import ManifestReader
from prime_core.store.policy import fetch_policy, read_seal, write_policy


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WEIGHTS)
    return path


def test_a_linked_version_copies_no_byte_and_reads_like_any_other(
    weights: Path, tmp_path: Path
) -> None:
    copied = ObjectStore(str(tmp_path / "copied"))
    linked = ObjectStore(str(tmp_path / "linked"))
    for store in (copied, linked):
        write_policy(
            store, 1, PARENT, "demo", weights, SIGNER, shard_bytes=300, linked=store is linked
        )
    assert read_seal(linked, 1) == read_seal(copied, 1)
    held = tmp_path / "linked" / layout.policy_weights_path(1)
    assert held.samefile(weights)
    assert not list((tmp_path / "linked").rglob("*.bin"))
    files = fetch_policy(linked, 1, tmp_path, tmp_path / "c", signer_address=SIGNER.address)
    assert files.weights[0].samefile(weights)
    held.unlink()
    held.write_bytes(WEIGHTS[:-1] + b"!")
    with pytest.raises(IntegrityError, match="isn't the one that its line names"):
        fetch_policy(linked, 1, tmp_path, tmp_path / "d", signer_address=SIGNER.address)


def test_a_linked_version_begun_from_other_bytes_is_refused(weights: Path, tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    write_policy(store, 1, PARENT, "demo", weights, SIGNER, shard_bytes=300, linked=True)
    (tmp_path / "run" / layout.policy_seal_path(1)).unlink()
    other = tmp_path / "other.safetensors"
    other.write_bytes(weights_bytes({"b": 700, "a": 300}, fill=1))
    with pytest.raises(StoreError, match="begun from other weights"):
        write_policy(store, 1, PARENT, "demo", other, SIGNER, linked=True)
    write_policy(store, 1, PARENT, "demo", weights, SIGNER, linked=True)


def test_messages_are_judged_one_by_one_as_they_come(weights: Path, tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    seal = write_policy(store, 1, PARENT, "demo", weights, SIGNER, shard_bytes=300)
    messages = [
        store.get(f"{layout.policy_dir(1)}/{name}")
        for name in (
            "header.json",
            *(f"shard-{i:05d}.json" for i in range(seal.shards)),
            "seal.json",
        )
    ]
    reader = ManifestReader(1, SIGNER.address, run_id="demo")
    for count, message in enumerate(messages):
        for wrong in (messages[count - 1], message[:-2] + b"}", b"", message + b" "):
            with pytest.raises((FormatError, IntegrityError)):
                reader.feed(wrong)
        assert len(reader.shards) == max(0, min(count - 1, seal.shards))
        reader.feed(message)
    assert reader.sealed
    assert reader.manifest.digest == seal.digest
    for signer, run in ((OTHER.address, "demo"), (SIGNER.address, "another")):
        with pytest.raises(IntegrityError):
            ManifestReader(1, signer, run_id=run).feed(messages[0])
    with pytest.raises(IntegrityError, match="another version"):
        ManifestReader(2, SIGNER.address).feed(messages[0])
