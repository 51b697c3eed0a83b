"""Reading the messages of policy versions: which are sealed, and what they say, verified.

`policy` and everyone who needs a seal (beacons, digests) read through here. A value is returned
only after the signatures, the chain and the seal over it were checked.
"""

from __future__ import annotations

from prime_core.api.errors import StoreError
from prime_core.store import layout
from prime_core.store.manifest import Header, Manifest, Seal
from prime_core.store.objects import MESSAGE_LIMIT, ObjectStore
from prime_core.store.partial import LINE_LIMIT, MAX_BYTES, ManifestReader

__all__ = [
    "MAX_BYTES",
    "Manifest",
    "Seal",
    "is_sealed",
    "read_header",
    "read_manifest",
    "read_seal",
    "sealed_versions",
]


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
    reader = ManifestReader(version, signer_address, max_bytes=max_bytes)
    while not reader.sealed:
        limit = LINE_LIMIT if reader.begun else MESSAGE_LIMIT
        reader.feed(store.get(reader.next_path(), limit))
    return reader.manifest


def read_header(
    store: ObjectStore, version: int, signer_address: str | None, max_bytes: int
) -> tuple[Header, str]:
    """The verified header of a version, sealed or not, and its signer; errors as `read_seal`."""
    reader = ManifestReader(version, signer_address, max_bytes=max_bytes)
    reader.feed(store.get(reader.next_path(), MESSAGE_LIMIT))
    return reader.header, reader.signer
