"""Reading the messages of policy versions: which are sealed, and what they say, verified.

`policy` and everyone who needs a seal (beacons, digests) read through here. A value is returned
only after the signatures, the chain and the seal over it were checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.signing import Payload, read_signed
from prime_core.store import layout, manifest
from prime_core.store.manifest import Header, Shard
from prime_core.store.objects import MESSAGE_LIMIT, ObjectStore

# More than any model this engine trains; a caller that knows its model passes less.
MAX_BYTES = 2**40
_LINE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Seal:
    """A sealed version: `digest` is the seal (32 bytes), `parent` that of the version before."""

    version: int
    digest: bytes
    parent: bytes | None
    total_size: int
    shards: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A sealed version's messages, verified against each other and their signer."""

    header: Header
    shards: tuple[Shard, ...]
    digest: bytes
    assembled_sha256: bytes | None
    signer: str

    @property
    def seal(self) -> Seal:
        """Its seal."""
        header = self.header
        return Seal(header.version, self.digest, header.parent, header.total_size, len(self.shards))


def is_sealed(store: ObjectStore, version: int) -> bool:
    """Whether the version is complete."""
    return store.exists(layout.policy_seal_path(version))


def sealed_versions(store: ObjectStore) -> list[int]:
    """All complete versions, ascending."""
    found = (layout.parse_numbered(name) for name in store.folders(layout.POLICIES))
    return sorted(version for version in found if version is not None and is_sealed(store, version))


def read_seal(store: ObjectStore, version: int, signer_address: str | None = None) -> bytes:
    """The 32-byte seal of a version, after checking signatures, chain and digest.

    Args:
        store: the run's store.
        version: the policy version.
        signer_address: who must have signed; None for one and the same signer throughout.

    Raises:
        StoreError: the version isn't sealed.
        IntegrityError, FormatError: its messages aren't what their signer wrote.
    """
    return read_manifest(store, version, signer_address=signer_address).digest


def read_manifest(
    store: ObjectStore,
    version: int,
    *,
    signer_address: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Manifest:
    """Read and verify all messages of a sealed version; errors as `read_seal`."""
    if not is_sealed(store, version):
        raise StoreError(
            f"policy version {version} isn't sealed",
            where=f"{store.url}/{layout.policy_dir(version)}",
            fix="wait for the trainer to publish it",
        )
    header, signer = read_header(store, version, signer_address, max_bytes)
    shards: list[Shard] = []
    previous = manifest.chain(header.payload())
    for index in range(header.shard_count):
        path = layout.policy_line_path(version, index)
        line = _read(store, path, signer)
        with _at(path):
            shards.append(manifest.parse_line(line, header, index, previous))
        previous = manifest.chain(line)
    path = layout.policy_seal_path(version)
    seal = _read(store, path, signer)
    with _at(path):
        fields = ("shards", "digest", "assembled_sha256")
        manifest.expect(seal, manifest.SEAL_SCHEMA, version, fields)
        assembled = manifest.optional_hash(seal, "assembled_sha256")
    if seal != manifest.seal_payload(header, shards, assembled):
        raise IntegrityError("seal isn't that of these shards", where=path, fix="fetch it again")
    return Manifest(header, tuple(shards), bytes.fromhex(seal["digest"]), assembled, signer)


def read_header(
    store: ObjectStore, version: int, signer_address: str | None, max_bytes: int
) -> tuple[Header, str]:
    """The verified header of a version, sealed or not, and its signer; errors as `read_seal`."""
    path = layout.policy_header_path(version)
    signed = read_signed(store.get(path, MESSAGE_LIMIT), signer_address, where=path)
    with _at(path):
        header = Header.parse(signed.payload, version, max_bytes)
        if header.payload() != signed.payload:
            raise FormatError("header has fields of another schema", fix="use its own version")
    return header, signed.signer


def _read(store: ObjectStore, path: str, signer: str) -> Payload:
    return read_signed(store.get(path, _LINE_LIMIT), signer, where=path).payload


@contextmanager
def _at(path: str) -> Iterator[None]:
    """Name the object in the errors of the pure parsers."""
    try:
        yield
    except (FormatError, IntegrityError) as error:
        raise type(error)(error.what, where=path, fix=error.fix) from error
