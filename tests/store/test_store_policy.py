from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.signing import Signer, read_signed, signed_bytes
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import (
    drop_cached,
    fetch_policy,
    is_sealed,
    read_manifest,
    read_seal,
    sealed_versions,
    write_policy,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "policy.json").read_text())
SIGNER = Signer(b"\x01" * 32)
OTHER = Signer(b"\x02" * 32)
NONCE = b"\x03" * 32
PARENT = b"\x04" * 32


def weights_bytes(sizes: dict[str, int], fill: int = 0) -> bytes:
    """A safetensors file of byte tensors."""
    index, offset, data = {}, 0, b""
    for name, size in sizes.items():
        index[name] = {"dtype": "U8", "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
        data += bytes((fill + n) % 256 for n in range(size))
    head = json.dumps({"__metadata__": {"format": "pt"}, **index}).encode()
    return len(head).to_bytes(8, "little") + head + data


WEIGHTS = weights_bytes({"b": 700, "a": 300})


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WEIGHTS)
    return path


@pytest.fixture(params=["directory", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return ObjectStore(f"memory://{uuid.uuid4().hex}")
    return ObjectStore(str(tmp_path / "run"))


def _objects(store: ObjectStore, version: int) -> list[str]:
    """Object paths of a version in the order in which they are written."""
    directory = layout.policy_dir(version)
    lines = [name for name in store.list(directory) if name.startswith("shard")]
    lines.sort(key=lambda name: (name.split(".")[0], name.endswith(".json")))
    return [f"{directory}/{name}" for name in ("header.json", *lines, "seal.json")]


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
    objects = {name: store.get(name).hex() for name in _objects(store, 0)}
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


def _publish(store: ObjectStore, weights: Path, version: int, shard_bytes: int = 250) -> bytes:
    parent = PARENT if version else None
    return write_policy(
        store, version, parent, "demo", weights, SIGNER, shard_bytes=shard_bytes
    ).digest


@settings(max_examples=30, deadline=None)
@given(kept=st.integers(0, 12), version=st.sampled_from([0, 1]), other_size=st.booleans())
def test_a_restart_after_any_object_finishes_the_same_version(
    tmp_path_factory: pytest.TempPathFactory, kept: int, version: int, other_size: bool
) -> None:
    run = tmp_path_factory.mktemp("run")
    weights = run / "w"
    weights.write_bytes(WEIGHTS)
    store = ObjectStore(str(run))
    seal = _publish(store, weights, version)
    objects = _objects(store, version)
    before = {path: store.get(path) for path in objects}
    for path in objects[kept:]:
        (run / path).unlink()
    assert not is_sealed(store, version) or kept >= len(objects)
    # A version that was begun keeps its shard size and nonce, whatever the caller says now.
    again = _publish(store, weights, version, 333 if other_size and kept else 250)
    if kept or version:
        assert again == seal
        assert {path: store.get(path) for path in _objects(store, version)} == before
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
    _publish(store, weights, 1)
    for path in _objects(store, 1)[4:]:
        (tmp_path / "run" / path).unlink()
    sizes = {"b": 700, "a": 300} if change == "bytes" else {"b": 699, "a": 301}
    weights.write_bytes(weights_bytes(sizes, fill=7))
    with pytest.raises(StoreError, match=r"other weights|other bytes"):
        _publish(store, weights, 1)
    assert not is_sealed(store, 1)


@pytest.mark.parametrize("data", [b"", b"x" * 7, b"\x05" + bytes(7) + b"{}", b"\xff" * 40, b"["])
def test_files_that_are_no_weights_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "w"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="safetensors"):
        write_policy(ObjectStore(str(tmp_path / "run")), 0, None, "demo", path, SIGNER)
    with pytest.raises(StoreError, match="can't be read"):
        write_policy(ObjectStore(str(tmp_path / "run")), 0, None, "demo", tmp_path / "no", SIGNER)


def _fetch(store: ObjectStore, cache: Path, **limits: int) -> bytes:
    policy = fetch_policy(store, 1, cache, cache, signer_address=SIGNER.address, **limits)
    return policy.weights[0].read_bytes()


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_damage_to_any_object_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    run = tmp_path_factory.mktemp("run")
    (run / "w").write_bytes(WEIGHTS)
    store = ObjectStore(str(run))
    shard_bytes = data.draw(st.sampled_from([600, 10_000]))
    _publish(store, run / "w", 1, shard_bytes)
    path = run / data.draw(st.sampled_from(_objects(store, 1)))
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "grow", "empty"]))
    if kind == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[place:]
    elif kind == "grow":
        content += b"\n"
    else:
        content.clear()
    path.write_bytes(bytes(content))
    with pytest.raises((IntegrityError, FormatError)):
        _fetch(store, run / "cache")
    assert [p for p in (run / "cache").glob("*") if p.is_file()] == []


def test_objects_of_other_versions_and_signers_are_refused(tmp_path: Path, weights: Path) -> None:
    run = tmp_path / "run"
    store = ObjectStore(str(run))
    for version in (1, 2):
        _publish(store, weights, version)
    for name in ("header.json", "shard-00000.json", "shard-00001.json", "seal.json"):
        target, source = run / "policies/000001" / name, run / "policies/000002" / name
        kept = target.read_bytes()
        target.write_bytes(source.read_bytes())
        with pytest.raises(IntegrityError):
            _fetch(store, tmp_path / "cache")
        target.write_bytes(signed_bytes(OTHER, read_signed(kept, None).payload))
        for expected in (SIGNER.address, None):
            with pytest.raises(IntegrityError):
                read_seal(store, 1, expected)
        target.write_bytes(kept)
    swapped = [run / f"policies/000001/shard-0000{n}.json" for n in (0, 1)]
    first, second = (path.read_bytes() for path in swapped)
    swapped[0].write_bytes(second)
    swapped[1].write_bytes(first)
    with pytest.raises(IntegrityError):
        _fetch(store, tmp_path / "cache")


@pytest.mark.parametrize(
    "change",
    [
        {"total_size": 2**62},
        {"total_size": 0},
        {"total_size": -1},
        {"total_size": True},
        {"shard_size": 0},
        {"shard_size": "9"},
        {"tensors": {}},
        {"tensors": [{}]},
        {"tensors": [{"name": "a", "dtype": "F32", "shape": [1], "offsets": [5, 4]}]},
        {"parent": None},
        {"nonce": "00" * 32},
        {"parent": "zz"},
        {"schema": "prime-core/policy/2"},
        {"run_id": 5},
        {"version": 2},
        {"extra": 1},
    ],
)
def test_signed_nonsense_is_refused_too(
    tmp_path: Path, weights: Path, change: dict[str, object]
) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    _publish(store, weights, 1)
    path = tmp_path / "run/policies/000001/header.json"
    payload = read_signed(path.read_bytes(), None).payload
    path.write_bytes(signed_bytes(SIGNER, {**payload, **change}))
    with pytest.raises((FormatError, IntegrityError)) as caught:
        _fetch(store, tmp_path / "cache")
    assert "header.json" in str(caught.value.where)


def test_a_policy_above_the_limit_is_refused_before_it_is_fetched(
    store: ObjectStore, weights: Path, tmp_path: Path
) -> None:
    _publish(store, weights, 1)
    assert _fetch(store, tmp_path / "cache", max_bytes=len(WEIGHTS)) == WEIGHTS
    with pytest.raises(FormatError, match="allowed"):
        _fetch(store, tmp_path / "cache", max_bytes=len(WEIGHTS) - 1)


def test_a_missing_shard_is_a_store_error(tmp_path: Path, weights: Path) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    for shard_bytes, version in ((250, 1), (10_000, 2)):
        _publish(store, weights, version, shard_bytes)
        (tmp_path / "run" / layout.policy_shard_path(version, 0)).unlink()
        with pytest.raises(StoreError, match="no such object"):
            fetch_policy(
                store, version, tmp_path, tmp_path / "cache", signer_address=SIGNER.address
            )


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"junk"),
        lambda path: path.write_bytes(WEIGHTS[:-1] + b"?"),
        lambda path: path.unlink(),
    ],
)
def test_a_damaged_cache_is_not_trusted(
    tmp_path: Path, weights: Path, damage: Callable[[Path], None]
) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    cache = tmp_path / "cache"
    _publish(store, weights, 1)
    assert _fetch(store, cache) == WEIGHTS
    (cached,) = cache.iterdir()
    inode = cached.stat().st_ino
    assert _fetch(store, cache) == WEIGHTS
    assert cached.stat().st_ino == inode  # it was hashed, not fetched again
    damage(cached)
    assert _fetch(store, cache) == WEIGHTS


def test_a_local_single_shard_is_linked_and_survives_the_cache(
    tmp_path: Path, weights: Path
) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    _publish(store, weights, 1, 10_000)
    assert _fetch(store, tmp_path / "cache") == WEIGHTS
    (cached,) = (tmp_path / "cache").iterdir()
    shard = tmp_path / "run" / layout.policy_shard_path(1, 0)
    assert cached.samefile(shard)
    drop_cached(tmp_path / "cache", keep=[1])
    assert cached.exists()
    drop_cached(tmp_path / "cache", keep=[2])
    assert not cached.exists()
    assert shard.read_bytes() == WEIGHTS


def test_a_cache_that_can_not_be_written_says_so(
    store: ObjectStore, weights: Path, tmp_path: Path
) -> None:
    _publish(store, weights, 1)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cache can't be used"):
        _fetch(store, tmp_path / "file")


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
