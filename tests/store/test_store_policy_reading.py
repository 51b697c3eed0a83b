"""Reading a policy version finds any damage, and trusts no cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_files import (
    OTHER,
    SIGNER,
    WEIGHTS,
    fetch,
    objects_of,
    publish,
)

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.signing import read_signed, signed_bytes
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import (
    drop_cached,
    fetch_policy,
    read_seal,
)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_damage_to_any_object_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    run = tmp_path_factory.mktemp("run")
    (run / "w").write_bytes(WEIGHTS)
    store = ObjectStore(str(run))
    shard_bytes = data.draw(st.sampled_from([600, 10_000]))
    publish(store, run / "w", 1, shard_bytes)
    path = run / data.draw(st.sampled_from(objects_of(store, 1)))
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
        fetch(store, run / "cache")
    assert [p for p in (run / "cache").glob("*") if p.is_file()] == []


def test_objects_of_other_versions_and_signers_are_refused(tmp_path: Path, weights: Path) -> None:
    run = tmp_path / "run"
    store = ObjectStore(str(run))
    for version in (1, 2):
        publish(store, weights, version)
    for name in ("header.json", "shard-00000.json", "shard-00001.json", "seal.json"):
        target, source = run / "policies/000001" / name, run / "policies/000002" / name
        kept = target.read_bytes()
        target.write_bytes(source.read_bytes())
        with pytest.raises(IntegrityError):
            fetch(store, tmp_path / "cache")
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
        fetch(store, tmp_path / "cache")


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
        {"schema": "prime-core/policy/1"},
        {"run_id": 5},
        {"version": 2},
        {"extra": 1},
    ],
)
def test_signed_nonsense_is_refused_too(
    tmp_path: Path, weights: Path, change: dict[str, object]
) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    publish(store, weights, 1)
    path = tmp_path / "run/policies/000001/header.json"
    payload = read_signed(path.read_bytes(), None).payload
    path.write_bytes(signed_bytes(SIGNER, {**payload, **change}))
    with pytest.raises((FormatError, IntegrityError)) as caught:
        fetch(store, tmp_path / "cache")
    assert "header.json" in str(caught.value.where)


def test_a_policy_above_the_limit_is_refused_before_it_is_fetched(
    store: ObjectStore, weights: Path, tmp_path: Path
) -> None:
    publish(store, weights, 1)
    assert fetch(store, tmp_path / "cache", max_bytes=len(WEIGHTS)) == WEIGHTS
    with pytest.raises(FormatError, match="allowed"):
        fetch(store, tmp_path / "cache", max_bytes=len(WEIGHTS) - 1)


def test_a_missing_shard_is_a_store_error(tmp_path: Path, weights: Path) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    for shard_bytes, version in ((250, 1), (10_000, 2)):
        publish(store, weights, version, shard_bytes)
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
    publish(store, weights, 1)
    assert fetch(store, cache) == WEIGHTS
    (cached,) = cache.iterdir()
    inode = cached.stat().st_ino
    assert fetch(store, cache) == WEIGHTS
    assert cached.stat().st_ino == inode  # it was hashed, not fetched again
    damage(cached)
    assert fetch(store, cache) == WEIGHTS


def test_a_local_single_shard_is_linked_and_survives_the_cache(
    tmp_path: Path, weights: Path
) -> None:
    store = ObjectStore(str(tmp_path / "run"))
    publish(store, weights, 1, 10_000)
    assert fetch(store, tmp_path / "cache") == WEIGHTS
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
    publish(store, weights, 1)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cache can't be used"):
        fetch(store, tmp_path / "file")
