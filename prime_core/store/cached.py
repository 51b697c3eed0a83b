"""Policy versions on a reader's disk: fetched from the store, every byte checked, kept, dropped.

Workers, evaluation and the trainer load their weights from here. A file has its name in a cache
only after all of it was checked, and it's checked again before it's trusted again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from prime_core.api.errors import IntegrityError, StoreError
from prime_core.api.inference import PolicyFiles
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.sealed import MAX_BYTES, Manifest, read_manifest
from prime_core.store.tensors import tensor_index

_CHUNK = 2**20
_SUFFIX = ".safetensors"


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
    holds the version in one file, the cache holds a link to it; never write to a cached file.

    Args:
        store: the run's store, or the directory that a client of relays fills.
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
        if not holds(target, found):
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


def holds(path: Path, found: Manifest) -> bool:
    """Whether a local file holds exactly the version's bytes."""
    whole = hashlib.sha256()
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != found.header.total_size:
                return False
            for shard in found.shards:
                if _hash_next(file, shard.size, whole, found) != shard.blake3:
                    return False
    except FileNotFoundError:
        return False
    return found.assembled_sha256 in (None, whole.digest())


def _hash_next(file: BinaryIO, size: int, whole: hashlib._Hash, found: Manifest) -> bytes:
    digest = blake3()
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
    """Link the file of a local version to the target if it's whole and the disk allows it."""
    version = found.header.version
    source = store.local_path(layout.policy_weights_path(version))
    if source is not None and not source.exists() and len(found.shards) == 1:
        source = store.local_path(layout.policy_shard_path(version, 0))
    if source is None or not holds(source, found):
        return False
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links: the caller copies
        return False
    return True


def _assemble(store: ObjectStore, found: Manifest, target: Path) -> None:
    """Fetch every shard, check it, and append it to the target."""
    whole = hashlib.sha256()
    version = found.header.version
    weights = store.local_path(layout.policy_weights_path(version))
    with target.open("xb") as file:
        for shard in found.shards:
            path = layout.policy_shard_path(version, shard.index)
            if weights is not None and weights.exists():
                data = _slice(weights, shard.index * found.header.shard_size, shard.size)
            else:
                data = store.get(path, shard.size)
            if len(data) != shard.size or blake3(data).digest() != shard.blake3:
                raise IntegrityError(
                    "shard isn't the one that its line names", where=path, fix="fetch it again"
                )
            if found.assembled_sha256 is not None:
                whole.update(data)
            file.write(data)
    if found.assembled_sha256 not in (None, whole.digest()):
        raise IntegrityError(
            "assembled weights have another SHA-256 than the seal says",
            where=layout.policy_dir(version),
        )


def _slice(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _check_index(weights: Path, found: Manifest) -> None:
    tensors, _ = tensor_index(weights)
    if tensors != found.header.tensors:
        raise IntegrityError(
            "weights hold other tensors than the header lists",
            where=layout.policy_dir(found.header.version),
            fix="have the trainer's host checked: it signed both",
        )
