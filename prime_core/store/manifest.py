"""The messages that describe a policy version: header, one line per shard, seal.

`policy` writes and reads them as signed objects; relays and clients check shards by them. The seal
is a function of the content alone: signatures and signers are left out of all that is hashed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_core.api.errors import FormatError, IntegrityError
from prime_core.signing import Payload, canonical

HEADER_SCHEMA = "prime-core/policy/2"
LINE_SCHEMA = "prime-core/policy-shard/2"
SEAL_SCHEMA = "prime-core/policy-seal/2"
MAX_SHARDS = 100_000
MAX_TENSORS = 100_000

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of the weights file: name, safetensors dtype, shape, bytes [start, end) of its
    data section."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    def payload(self) -> Payload:
        """Its entry in the header."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "offsets": [self.start, self.end],
        }


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a version before its first shard is cut.

    Attributes:
        run_id: the run.
        version: the policy version.
        parent: the seal of the version before; None for version 0.
        nonce: 32 bytes drawn for version 0, so that nobody knows its seal before; None otherwise.
        tensors: the index of the safetensors file, by name.
        total_size: bytes of that file.
        shard_size: bytes of every shard but the last.
    """

    run_id: str
    version: int
    parent: bytes | None
    nonce: bytes | None
    tensors: tuple[Tensor, ...]
    total_size: int
    shard_size: int

    @property
    def shard_count(self) -> int:
        """How many shards the file is cut into."""
        return -(-self.total_size // self.shard_size)

    def size_of_shard(self, index: int) -> int:
        """Bytes of a shard: the full size but for the last."""
        return min(self.shard_size, self.total_size - index * self.shard_size)

    def payload(self) -> Payload:
        """The message to sign."""
        return {
            "schema": HEADER_SCHEMA,
            "run_id": self.run_id,
            "version": self.version,
            "parent": None if self.parent is None else self.parent.hex(),
            "nonce": None if self.nonce is None else self.nonce.hex(),
            "tensors": [tensor.payload() for tensor in self.tensors],
            "total_size": self.total_size,
            "shard_size": self.shard_size,
        }

    @classmethod
    def parse(cls, payload: Payload, version: int, max_bytes: int) -> Header:
        """Read a verified header; sizes are held to the limits before anyone allocates by them.

        Raises:
            FormatError: another schema or a field out of its range.
            IntegrityError: a header of another version.
        """
        expect(payload, HEADER_SCHEMA, version, ("parent", "nonce", "tensors"))
        total, shard = size_of(payload, "total_size"), size_of(payload, "shard_size")
        if not 0 < total <= max_bytes:
            raise FormatError(
                f"policy of {total} bytes, allowed are {max_bytes}", fix="raise max_bytes"
            )
        if shard < 1 or -(-total // shard) > MAX_SHARDS:
            raise FormatError(f"shards of {shard} bytes", fix=f"at most {MAX_SHARDS} shards")
        parent, nonce = optional_hash(payload, "parent"), optional_hash(payload, "nonce")
        if (parent is None) != (version == 0) or (nonce is None) != (version != 0):
            raise FormatError("version 0 alone has a nonce, every other one a parent")
        tensors = payload["tensors"]
        if not isinstance(tensors, list) or len(tensors) > MAX_TENSORS:
            raise FormatError(f"tensor index isn't a list of at most {MAX_TENSORS}")
        return cls(
            run_id=payload["run_id"],
            version=version,
            parent=parent,
            nonce=nonce,
            tensors=tuple(parse_tensor(entry, total) for entry in tensors),
            total_size=total,
            shard_size=shard,
        )


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard's size and BLAKE3."""

    index: int
    size: int
    blake3: bytes


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


def line_payload(header: Header, shard: Shard, previous: bytes) -> Payload:
    """The line of a shard; `previous` is the `chain` of the message before it."""
    return {
        "schema": LINE_SCHEMA,
        "run_id": header.run_id,
        "version": header.version,
        "index": shard.index,
        "size": shard.size,
        "blake3": shard.blake3.hex(),
        "previous": previous.hex(),
    }


def parse_line(payload: Payload, header: Header, index: int, previous: bytes) -> Shard:
    """Read a verified line.

    Raises:
        FormatError: another schema or a malformed field.
        IntegrityError: not line `index` of this header's chain, or another size than it says.
    """
    expect(payload, LINE_SCHEMA, header.version, ("index", "size", "blake3", "previous"))
    shard = Shard(size_of(payload, "index"), size_of(payload, "size"), hash_of(payload, "blake3"))
    if line_payload(header, shard, previous) != payload or shard.index != index:
        raise IntegrityError(f"line {index} doesn't follow the one before", fix="fetch it again")
    if shard.size != header.size_of_shard(index):
        raise IntegrityError(f"line {index} has another size than the header says")
    return shard


def chain(payload: Payload) -> bytes:
    """SHA-256 of a message without its signature and signer; 32 bytes."""
    return hashlib.sha256(canonical(payload)).digest()


def seal_digest(header: Header, shards: Sequence[Shard], assembled: bytes | None) -> bytes:
    """The 32 bytes that stand for a version's content.

    SHA-256 over these parts, each behind its length in 4 bytes little-endian: the text
    `prime-core/seal/2`; the header's `chain`; per shard its size in 8 bytes little-endian and its
    BLAKE3; the assembled file's SHA-256, or nothing.
    """
    digest = hashlib.sha256()
    parts = [b"prime-core/seal/2", chain(header.payload())]
    parts += [shard.size.to_bytes(8, "little") + shard.blake3 for shard in shards]
    parts.append(assembled or b"")
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.digest()


def seal_payload(header: Header, shards: Sequence[Shard], assembled: bytes | None) -> Payload:
    """The seal as a message to sign."""
    return {
        "schema": SEAL_SCHEMA,
        "run_id": header.run_id,
        "version": header.version,
        "shards": len(shards),
        "digest": seal_digest(header, shards, assembled).hex(),
        "assembled_sha256": None if assembled is None else assembled.hex(),
    }


def expect(payload: Payload, schema: str, version: int, fields: Sequence[str]) -> None:
    """Hold a message to its schema, version and the presence of fields; types come after."""
    if payload.get("schema") != schema:
        raise FormatError(f"not a message of schema {schema}", fix="use the version that wrote it")
    missing = [name for name in ("run_id", "version", *fields) if name not in payload]
    if missing:
        raise FormatError(f"message lacks {', '.join(missing)}")
    if not isinstance(payload["run_id"], str):
        raise FormatError("run_id isn't text")
    if type(payload["version"]) is not int or payload["version"] != version:
        raise IntegrityError(f"message of another version than {version}", fix="fetch it again")


def size_of(payload: Mapping[str, Any], name: str) -> int:
    """A field that counts something."""
    value = payload.get(name)
    if type(value) is not int or not 0 <= value < 2**63:
        raise FormatError(f"{name} isn't a count")
    return value


def hash_of(payload: Mapping[str, Any], name: str) -> bytes:
    """A field that holds 32 bytes of a hash in hexadecimal."""
    value = payload.get(name)
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise FormatError(f"{name} isn't a hash of 32 bytes")
    return bytes.fromhex(value)


def optional_hash(payload: Mapping[str, Any], name: str) -> bytes | None:
    """The same, or null."""
    return None if payload.get(name) is None else hash_of(payload, name)


def parse_tensor(entry: Any, limit: int) -> Tensor:
    """One entry of a tensor index; FormatError where it's malformed or lies beyond `limit`."""
    if not isinstance(entry, dict) or entry.keys() != {"name", "dtype", "shape", "offsets"}:
        raise FormatError("tensor index holds an entry of other fields")
    name, dtype, shape, offsets = (entry[key] for key in ("name", "dtype", "shape", "offsets"))
    if not isinstance(name, str) or not isinstance(dtype, str):
        raise FormatError("tensor index holds a name or dtype that isn't text")
    if not _counts(shape) or not _counts(offsets) or len(offsets) != 2:
        raise FormatError("tensor index holds a malformed shape or offset", where=name[:200])
    start, end = offsets
    if not start <= end <= limit:
        raise FormatError("tensor lies outside the weights", where=name[:200])
    return Tensor(name, dtype, tuple(shape), start, end)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)
