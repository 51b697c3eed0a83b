"""Policy versions in the store: published by the trainer, fetched by workers and evaluation.

A version exists once its seal does. Nothing that is published is cut again: a restarted trainer
finishes a version from the weights on its disk, and gets the seal it would have got.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from prime_core.api.errors import StoreError
from prime_core.signing import Signer, signed_bytes
from prime_core.store import layout, manifest
from prime_core.store.cached import drop_cached, fetch_policy
from prime_core.store.manifest import Header, Shard
from prime_core.store.objects import ObjectExistsError, ObjectMissingError, ObjectStore
from prime_core.store.sealed import (
    MAX_BYTES,
    Manifest,
    Seal,
    is_sealed,
    read_header,
    read_manifest,
    read_seal,
    sealed_versions,
)
from prime_core.store.tensors import tensor_index

__all__ = [
    "MAX_BYTES",
    "SHARD_BYTES",
    "Manifest",
    "Seal",
    "drop_cached",
    "fetch_policy",
    "is_sealed",
    "read_manifest",
    "read_seal",
    "sealed_versions",
    "write_policy",
]

SHARD_BYTES = 64 * 2**20
_BLOCK = 2**20


def write_policy(
    store: ObjectStore,
    version: int,
    parent_seal: bytes | None,
    run_id: str,
    weights: Path,
    signer: Signer,
    *,
    shard_bytes: int = SHARD_BYTES,
    nonce: bytes | None = None,
    assembled: bool = False,
    linked: bool = False,
) -> Seal:
    """Publish a policy version, or finish one that was begun, or return the seal of a sealed one.

    Header first, then each shard's bytes and its line, the seal last, so that a relay can pass
    shards on while later ones are cut.

    Args:
        store: the run's store.
        version: the policy version.
        parent_seal: the seal of version - 1; None for version 0.
        run_id: the run.
        weights: the version's one safetensors file; it must stay as it is until the seal is
            written, as a restart goes on from it.
        signer: the trainer's key.
        shard_bytes: size of a shard; a version that was begun keeps its own.
        nonce: 32 bytes for version 0; drawn unless given. Ignored for other versions.
        assembled: also seal the whole file's SHA-256.
        linked: in a directory, make the file itself the object that holds the shards' bytes: no
            byte is copied, and nobody may ever write to the file. A remote store gets shards.

    Raises:
        StoreError: an object can't be written, or the version was begun from other weights.
        FormatError: the weights aren't a safetensors file.
        IntegrityError: what is published already is not from this signer or is damaged.
    """
    assert (parent_seal is None) == (version == 0), "every version but 0 has a parent"
    if is_sealed(store, version):
        sealed = read_manifest(store, version, signer_address=signer.address)
        _same_origin(sealed.header, run_id, parent_seal)
        return sealed.seal
    header = _begin(store, version, parent_seal, run_id, weights, signer, shard_bytes, nonce)
    if linked := linked and store.local_path(layout.RUN) is not None:
        _link(store, version, weights)
    shards: list[Shard] = []
    previous = manifest.chain(header.payload())
    whole = hashlib.sha256() if assembled else None
    with (
        _opened(weights) as file,
        closing(_hashes(store, header, file, linked, whole)) as hashes,
    ):
        for index, found in enumerate(hashes):
            if not found:
                raise StoreError("weights shrank while they were published", where=str(weights))
            shard = Shard(index, header.size_of_shard(index), found)
            line = manifest.line_payload(header, shard, previous)
            store.put_same(layout.policy_line_path(version, index), signed_bytes(signer, line))
            previous = manifest.chain(line)
            shards.append(shard)
    total = None if whole is None else whole.digest()
    seal = manifest.seal_payload(header, shards, total)
    store.put_same(layout.policy_seal_path(version), signed_bytes(signer, seal))
    digest = bytes.fromhex(seal["digest"])
    return Seal(version, digest, parent_seal, header.total_size, len(shards))


def _begin(
    store: ObjectStore,
    version: int,
    parent: bytes | None,
    run_id: str,
    weights: Path,
    signer: Signer,
    shard_bytes: int,
    nonce: bytes | None,
) -> Header:
    """The header of a version: the one already published, or a new one."""
    tensors, total = tensor_index(weights)
    try:
        header, _ = read_header(store, version, signer.address, MAX_BYTES)
    except ObjectMissingError:
        drawn = (nonce or secrets.token_bytes(32)) if version == 0 else None
        assert drawn is None or len(drawn) == 32, len(drawn)
        header = Header(run_id, version, parent, drawn, tensors, total, shard_bytes)
        Header.parse(header.payload(), version, MAX_BYTES)  # never publish what none would read
        store.put(layout.policy_header_path(version), signed_bytes(signer, header.payload()))
        return header
    _same_origin(header, run_id, parent)
    if (header.tensors, header.total_size) != (tensors, total):
        raise _other_weights(version, weights)
    return header


def _link(store: ObjectStore, version: int, weights: Path) -> None:
    path = layout.policy_weights_path(version)
    try:
        store.put_linked(path, weights)
    except ObjectExistsError:
        published = store.local_path(path)
        assert published is not None
        if not published.samefile(weights) and not _equal(published, weights):
            raise _other_weights(version, weights) from None


def _hashes(
    store: ObjectStore, header: Header, file: BinaryIO, linked: bool, whole: hashlib._Hash | None
) -> Generator[bytes, None, None]:
    """The BLAKE3 of each shard; b"" for one that the file hasn't. Close it before the file.

    A linked file is hashed ahead in a thread: the disk takes milliseconds to make a line durable.
    """
    sizes = [header.size_of_shard(index) for index in range(header.shard_count)]
    if not linked:
        for index, size in enumerate(sizes):
            yield _put_next(store, header.version, index, file, size, whole)
        return
    with ThreadPoolExecutor(1, "hash") as thread:
        try:
            for future in [thread.submit(_hash_next, file, size, whole) for size in sizes]:
                yield future.result()
        finally:
            thread.shutdown(cancel_futures=True)


def _hash_next(file: BinaryIO, size: int, whole: hashlib._Hash | None) -> bytes:
    """BLAKE3 of the next `size` bytes, in little memory; b"" where the file ends before."""
    digest, block = blake3(), memoryview(bytearray(min(size, _BLOCK)))
    while size > 0:
        count = file.readinto(block[: min(size, _BLOCK)])  # type: ignore[attr-defined]
        if not count:
            return b""
        digest.update(block[:count])
        if whole is not None:
            whole.update(block[:count])
        size -= count
    return digest.digest()


def _put_next(
    store: ObjectStore,
    version: int,
    index: int,
    file: BinaryIO,
    size: int,
    whole: hashlib._Hash | None,
) -> bytes:
    """The same, and the bytes become the shard's object."""
    data = file.read(size)
    if len(data) != size:
        return b""
    if whole is not None:
        whole.update(data)
    store.put_same(layout.policy_shard_path(version, index), data)
    return blake3(data).digest()


def _equal(one: Path, other: Path) -> bool:
    with one.open("rb") as first, other.open("rb") as second:
        return hashlib.file_digest(first, "sha256").digest() == (
            hashlib.file_digest(second, "sha256").digest()
        )


def _other_weights(version: int, weights: Path) -> StoreError:
    return StoreError(
        f"policy version {version} was begun from other weights",
        where=str(weights),
        fix="restore the weights that it was begun from, or use a fresh run directory",
    )


def _same_origin(header: Header, run_id: str, parent: bytes | None) -> None:
    if (header.run_id, header.parent) != (run_id, parent):
        raise StoreError(
            f"policy version {header.version} is of another run or has another parent",
            where=layout.policy_dir(header.version),
            fix="use a fresh run directory",
        )


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise StoreError(f"weights can't be read: {error.strerror}", where=str(path)) from error
