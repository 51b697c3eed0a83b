"""A policy version is written once, in order, and finished after any crash."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_files import (
    NONCE,
    OTHER,
    PARENT,
    SIGNER,
    WEIGHTS,
    objects_of,
    publish,
    weights_bytes,
)

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.signing import Signer
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import (
    fetch_policy,
    is_sealed,
    read_manifest,
    read_seal,
    sealed_versions,
    write_policy,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "policy-2.json").read_text())


@pytest.mark.parametrize("shard_bytes", [100, 500, 10_000])
@pytest.mark.parametrize("assembled", [False, True])
def test_a_policy_is_fetched_as_it_was_written(
    store: ObjectStore, weights: Path, tmp_path: Path, shard_bytes: int, assembled: bool
) -> None:
    seal = write_policy(
        store, 0, None, "demo", weights, SIGNER, shard_bytes=shard_bytes, assembled=assembled
    )
    assert seal.shards == -(-len(WEIGHTS) // shard_bytes)
    assert seal.digest == read_seal(store, 0, SIGNER.address) == read_seal(store, 0)
    policy = fetch_policy(
        store, 0, tmp_path / "model", tmp_path / "cache", signer_address=SIGNER.address
    )
    assert (policy.version, policy.model_dir) == (0, tmp_path / "model")
    assert policy.digest == seal.digest
    assert [path.read_bytes() for path in policy.weights] == [WEIGHTS]
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [policy.weights[0].name]
    names = [tensor.name for tensor in read_manifest(store, 0).header.tensors]
    assert names == ["a", "b"]


def test_golden_policy_version(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    signer = Signer(bytes.fromhex(VECTORS["private_key"]))
    path = tmp_path / "w"
    path.write_bytes(bytes.fromhex(VECTORS["weights"]))
    seal = write_policy(
        store,
        0,
        None,
        VECTORS["run_id"],
        path,
        signer,
        shard_bytes=VECTORS["shard_bytes"],
        nonce=bytes.fromhex(VECTORS["nonce"]),
        assembled=True,
    )
    assert seal.digest.hex() == VECTORS["seal"]
    objects = {name: store.get(name).hex() for name in objects_of(store, 0)}
    assert objects == VECTORS["objects"]


def test_a_version_exists_once_it_is_sealed(store: ObjectStore, weights: Path) -> None:
    assert sealed_versions(store) == []
    parent = write_policy(store, 0, None, "demo", weights, SIGNER).digest
    write_policy(store, 10, parent, "demo", weights, SIGNER)
    store.put("policies/000011/header.json", b"{}")
    store.put("policies/notes/seal.json", b"{}")
    assert sealed_versions(store) == [0, 10]
    assert is_sealed(store, 10)
    assert not is_sealed(store, 11)
    with pytest.raises(StoreError, match="isn't sealed"):
        read_seal(store, 11)


def test_the_seal_is_of_content_not_of_signatures(tmp_path: Path, weights: Path) -> None:
    def seal(name: str, signer: Signer = SIGNER, **changes: object) -> bytes:
        arguments = {"version": 1, "parent": PARENT, "run": "demo", "weights": weights, **changes}
        return write_policy(
            ObjectStore(str(tmp_path / name)),
            arguments["version"],
            arguments["parent"],
            arguments["run"],
            arguments["weights"],
            signer,
            shard_bytes=arguments.get("shard", 400),
            nonce=arguments.get("nonce"),
            assembled=arguments.get("assembled", False),
        ).digest

    base = seal("a")
    assert seal("b") == base
    assert seal("c", OTHER) == base
    other = tmp_path / "other"
    other.write_bytes(weights_bytes({"b": 700, "a": 300}, fill=1))
    changed = [
        seal("d", version=2),
        seal("e", parent=b"\x05" * 32),
        seal("f", run="other"),
        seal("g", weights=other),
        seal("h", shard=401),
        seal("i", assembled=True),
        seal("j", version=0, parent=None, nonce=NONCE),
        seal("k", version=0, parent=None, nonce=b"\x09" * 32),
        seal("l", version=0, parent=None),
        seal("m", version=0, parent=None),
    ]
    assert len({base, *changed}) == 1 + len(changed)
    assert seal("n", version=0, parent=None, nonce=NONCE) == changed[6]


@settings(max_examples=30, deadline=None)
@given(kept=st.integers(0, 12), version=st.sampled_from([0, 1]), other_size=st.booleans())
def test_a_restart_after_any_object_finishes_the_same_version(
    tmp_path_factory: pytest.TempPathFactory, kept: int, version: int, other_size: bool
) -> None:
    run = tmp_path_factory.mktemp("run")
    weights = run / "w"
    weights.write_bytes(WEIGHTS)
    store = ObjectStore(str(run))
    seal = publish(store, weights, version)
    objects = objects_of(store, version)
    before = {path: store.get(path) for path in objects}
    for path in objects[kept:]:
        (run / path).unlink()
    assert not is_sealed(store, version) or kept >= len(objects)
    # A version that was begun keeps its shard size and nonce, whatever the caller says now.
    again = publish(store, weights, version, 333 if other_size and kept else 250)
    if kept or version:
        assert again == seal
        assert {path: store.get(path) for path in objects_of(store, version)} == before
    else:
        assert again != seal  # nothing was published: version 0 draws a new nonce
    assert read_seal(store, version, SIGNER.address) == again


def test_a_sealed_version_is_never_cut_again(store: ObjectStore, weights: Path) -> None:
    seal = write_policy(store, 0, None, "demo", weights, SIGNER)
    weights.write_bytes(weights_bytes({"other": 5}))
    assert write_policy(store, 0, None, "demo", weights, SIGNER) == seal
    with pytest.raises(StoreError, match="another run"):
        write_policy(store, 0, None, "else", weights, SIGNER)
    with pytest.raises(IntegrityError, match="signed by"):
        write_policy(store, 0, None, "demo", weights, OTHER)


@pytest.mark.parametrize("change", ["index", "bytes"])
def test_other_weights_can_not_finish_a_version(tmp_path: Path, weights: Path, change: str) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    publish(store, weights, 1)
    for path in objects_of(store, 1)[4:]:
        (tmp_path / "run" / path).unlink()
    sizes = {"b": 700, "a": 300} if change == "bytes" else {"b": 699, "a": 301}
    weights.write_bytes(weights_bytes(sizes, fill=7))
    with pytest.raises(StoreError, match=r"other weights|other bytes"):
        publish(store, weights, 1)
    assert not is_sealed(store, 1)


@pytest.mark.parametrize("data", [b"", b"x" * 7, b"\x05" + bytes(7) + b"{}", b"\xff" * 40, b"["])
def test_files_that_are_no_weights_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "w"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="safetensors"):
        write_policy(ObjectStore(str(tmp_path / "run")), 0, None, "demo", path, SIGNER)
    with pytest.raises(StoreError, match="can't be read"):
        write_policy(ObjectStore(str(tmp_path / "run")), 0, None, "demo", tmp_path / "no", SIGNER)


PUBLISHER = """
import sys
from pathlib import Path
from prime_core.signing import Signer
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import write_policy
run = Path(sys.argv[1])
parent = bytes([4]) * 32
seal = write_policy(
    ObjectStore(str(run)), 1, parent, "demo", run / "w", Signer(bytes([1]) * 32), shard_bytes=10_000
)
print(seal.digest.hex())
"""


@pytest.mark.integration
def test_a_publisher_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "w").write_bytes(weights_bytes({"a": 1_000_000}))
    arguments = [sys.executable, "-c", PUBLISHER, str(run)]
    store = ObjectStore(str(run))
    for wait in (0.0, 0.004, 0.012):
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        while not (run / "policies").exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == read_seal(store, 1, SIGNER.address).hex()
    shutil.rmtree(run / "policies")
    fresh = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert fresh.stdout == done.stdout
