"""Policy versions in the store: published by the trainer, fetched by workers and evaluation.

A version exists once its seal does. Nothing that is published is cut again: a restarted trainer
finishes a version from the weights on its disk, and gets the seal it would have got.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from prime_core.api.errors import IntegrityError, StoreError
from prime_core.api.inference import PolicyFiles
from prime_core.signing import Signer, signed_bytes
from prime_core.store import layout, manifest
from prime_core.store.manifest import Header, Shard
from prime_core.store.objects import ObjectMissingError, ObjectStore
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
_CHUNK = 2**20
_SUFFIX = ".safetensors"


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
    shards: list[Shard] = []
    previous = manifest.chain(header.payload())
    whole = hashlib.sha256() if assembled else None
    with _opened(weights) as file:
        for index in range(header.shard_count):
            size = header.size_of_shard(index)
            data = file.read(size)
            if len(data) != size:
                raise StoreError("weights shrank while they were published", where=str(weights))
            if whole is not None:
                whole.update(data)
            shard = Shard(index, size, hashlib.sha256(data).digest())
            store.put_same(layout.policy_shard_path(version, index), data)
            line = manifest.line_payload(header, shard, previous)
            store.put_same(layout.policy_line_path(version, index), signed_bytes(signer, line))
            previous = manifest.chain(line)
            shards.append(shard)
    total = None if whole is None else whole.digest()
    seal = manifest.seal_payload(header, shards, total)
    store.put_same(layout.policy_seal_path(version), signed_bytes(signer, seal))
    digest = bytes.fromhex(seal["digest"])
    return Seal(version, digest, parent_seal, header.total_size, len(shards))


def fetch_policy(
    store: ObjectStore,
    version: int,
    model_dir: Path,
    cache_dir: Path,
    *,
    signer_address: str,
    max_bytes: int = MAX_BYTES,
) -> PolicyFiles:
    """A version's weights on local disk, every byte checked.

    A file that is in the cache is hashed again before it's trusted. Where the store is local and
    the version has one shard, the cache holds a link to it; never write to a cached file.

    Args:
        store: the run's store.
        version: a sealed policy version.
        model_dir: config and tokenizer, handed through.
        cache_dir: a local directory; processes may share it.
        signer_address: the trainer's address.
        max_bytes: refuse a larger policy before fetching any of it.

    Raises:
        StoreError: not sealed, a shard is missing, or the cache can't be written.
        IntegrityError, FormatError: messages or shards aren't what the signer wrote.
    """
    found = read_manifest(store, version, signer_address=signer_address, max_bytes=max_bytes)
    target = cache_dir / f"{version:06d}-{found.digest.hex()[:16]}{_SUFFIX}"
    try:
        if not _holds(target, found):
            cache_dir.mkdir(parents=True, exist_ok=True)
            temporary = cache_dir / f".{target.name}-{os.getpid()}-{secrets.token_hex(4)}"
            try:
                if not _linked(store, found, temporary):
                    _assemble(store, found, temporary)
                _check_index(temporary, found)
                temporary.replace(target)
            finally:
                # Also after replace: renaming one link of a file over another does nothing.
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"policy cache can't be used: {error.strerror}",
            where=str(target),
            fix="free disk space, or use another cache directory",
        ) from error
    return PolicyFiles(version, model_dir, (target,), found.digest)


def drop_cached(cache_dir: Path, keep: Collection[int]) -> None:
    """Remove the cached weights of all versions but `keep`; an engine that has loaded them is not
    disturbed."""
    for path in cache_dir.glob(f"*{_SUFFIX}"):
        version = layout.parse_numbered(path.name.split("-")[0])
        if version is not None and version not in keep:
            with suppress(OSError):  # another process dropped it first
                path.unlink()


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
    tensors, total = manifest.tensor_index(weights)
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
        raise StoreError(
            f"policy version {version} was begun from other weights",
            where=str(weights),
            fix="restore the weights that it was begun from, or use a fresh run directory",
        )
    return header


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


def _holds(path: Path, found: Manifest) -> bool:
    """Whether a local file holds exactly the version's bytes."""
    whole = hashlib.sha256()
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != found.header.total_size:
                return False
            for shard in found.shards:
                if _hash_next(file, shard.size, whole, found) != shard.sha256:
                    return False
    except FileNotFoundError:
        return False
    return found.assembled_sha256 in (None, whole.digest())


def _hash_next(file: BinaryIO, size: int, whole: hashlib._Hash, found: Manifest) -> bytes:
    digest = hashlib.sha256()
    while size > 0:
        data = file.read(min(size, _CHUNK))
        if not data:
            break
        digest.update(data)
        if found.assembled_sha256 is not None:
            whole.update(data)
        size -= len(data)
    return digest.digest()


def _linked(store: ObjectStore, found: Manifest, target: Path) -> bool:
    """Link a local single shard to the target if it's whole and the disk allows it."""
    source = store.local_path(layout.policy_shard_path(found.header.version, 0))
    if source is None or len(found.shards) != 1 or not _holds(source, found):
        return False
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links: the caller copies
        return False
    return True


def _assemble(store: ObjectStore, found: Manifest, target: Path) -> None:
    """Fetch every shard, check it, and append it to the target."""
    whole = hashlib.sha256()
    with target.open("xb") as file:
        for shard in found.shards:
            path = layout.policy_shard_path(found.header.version, shard.index)
            data = store.get(path, shard.size)
            if len(data) != shard.size or hashlib.sha256(data).digest() != shard.sha256:
                raise IntegrityError(
                    "shard isn't the one that its line names", where=path, fix="fetch it again"
                )
            if found.assembled_sha256 is not None:
                whole.update(data)
            file.write(data)
    if found.assembled_sha256 not in (None, whole.digest()):
        raise IntegrityError(
            "assembled weights have another SHA-256 than the seal says",
            where=layout.policy_dir(found.header.version),
        )


def _check_index(weights: Path, found: Manifest) -> None:
    tensors, _ = manifest.tensor_index(weights)
    if tensors != found.header.tensors:
        raise IntegrityError(
            "weights hold other tensors than the header lists",
            where=layout.policy_dir(found.header.version),
            fix="have the trainer's host checked: it signed both",
        )
