"""Keys, canonical messages and their EIP-191 signatures, as Ethereum wallets make them.

Whoever writes a statement others must trust signs it here; whoever reads one verifies it here
before using a value of it. Equal to eth-account byte for byte (a test holds it to that), without
that package's import: half a second of CPU, and a recursion limit raised to 100,000.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import coincurve
from Crypto.Hash import keccak

from prime_core.api.errors import FormatError, IntegrityError, StoreError

Payload: TypeAlias = dict[str, Any]

_PREFIX = b"\x19Ethereum Signed Message:\n"  # EIP-191, version 0x45
_SIGNATURE = re.compile(r"0x[0-9a-f]{130}")
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_KEY = re.compile(r"0x[0-9a-f]{64}")
_HALF_ORDER = (
    0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0  # secp256k1 n div 2
)
_MAX_DEPTH = 16
_RESERVED = ("signer", "signature")


def canonical(payload: Mapping[str, Any]) -> bytes:
    """The one byte string of a payload: JSON, keys sorted, no spaces, UTF-8.

    Raises:
        FormatError: a float (whose text differs between languages), an integer outside
            [-2**63, 2**64), a key that isn't a string, or a value that JSON doesn't have.
    """
    try:
        text = json.dumps(
            _checked(payload, 0),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError("text in a message isn't valid Unicode", fix="remove it") from error


class Signer:
    """A private key. It never shows itself: not in repr, errors, logs or pickles."""

    __slots__ = ("_key", "address")

    def __init__(self, secret: bytes) -> None:
        try:
            self._key = coincurve.PrivateKey(secret)
        except (ValueError, TypeError):
            raise FormatError(
                "not a private key of secp256k1", fix="create a new one with Signer.create"
            ) from None  # the cause might name the secret
        self.address = _address(self._key.public_key)

    @classmethod
    def create(cls, path: Path) -> Signer:
        """Draw a key and write it to a new file that only this user may read.

        Raises:
            StoreError: the file exists already or can't be written.
        """
        secret = secrets.token_bytes(32)
        signer = cls(secret)
        temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"0x{secret.hex()}\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        except OSError as error:
            raise StoreError(
                f"key can't be written: {error.strerror}",
                where=str(path),
                fix="keep the key that is there, or remove it",
            ) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
        return signer

    @classmethod
    def load(cls, path: Path) -> Signer:
        """Read a key file.

        Raises:
            StoreError: it's missing, or others may read it.
            FormatError: it doesn't hold a key.
        """
        try:
            with path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read(256).decode("ascii", "replace").strip()
        except OSError as error:
            raise StoreError(
                f"key can't be read: {error.strerror}",
                where=str(path),
                fix="start from the run directory that holds it",
            ) from error
        if mode & 0o077:
            raise StoreError(
                f"key may be read by others (mode {mode:o})",
                where=str(path),
                fix=f"chmod 600 {path}",
            )
        if not _KEY.fullmatch(text):
            raise FormatError(
                "not a key file", where=str(path), fix="it holds 0x and 64 hexadecimal digits"
            )
        return cls(bytes.fromhex(text[2:]))

    def sign(self, message: bytes) -> str:
        """The EIP-191 signature of bytes: 0x and 130 hexadecimal digits; deterministic."""
        signature: bytes = self._key.sign_recoverable(_digest(message), hasher=None)
        return "0x" + signature[:64].hex() + f"{signature[64] + 27:02x}"

    def __repr__(self) -> str:
        return f"Signer({self.address})"

    def __reduce__(self) -> Any:
        raise TypeError("a private key isn't pickled; pass the path of its file")


@dataclass(frozen=True, slots=True)
class Signed:
    """A message that was verified: what it says and who signed it (address, lower-case)."""

    payload: Payload
    signer: str


def recover(message: bytes, signature: str) -> str:
    """The address whose key signed these bytes; any well-formed signature gives some address.

    Raises:
        IntegrityError: the signature isn't in the one form that `sign` makes, or of no key.
    """
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise IntegrityError("not a signature", fix="expected 0x and 130 lower-case hex digits")
    raw = bytes.fromhex(signature[2:])
    # High s and other recovery ids would be second signatures of the same message.
    if raw[64] not in (27, 28) or int.from_bytes(raw[32:64], "big") > _HALF_ORDER:
        raise IntegrityError("signature isn't in canonical form", fix="use v 27 or 28 and low s")
    try:
        key = coincurve.PublicKey.from_signature_and_message(
            raw[:64] + bytes([raw[64] - 27]), _digest(message), hasher=None
        )
    except ValueError as error:
        raise IntegrityError("signature of no key", fix="sign the message again") from error
    return _address(key)


def sign_message(signer: Signer, payload: Mapping[str, Any]) -> Payload:
    """The payload with `signer` (address) and `signature` (over everything else) added."""
    assert not payload.keys() & set(_RESERVED), sorted(payload)
    statement = {**payload, "signer": signer.address}
    return {**statement, "signature": signer.sign(canonical(statement))}


def verify_message(message: Mapping[str, Any], expected: str | None) -> Payload:
    """The payload of a signed message.

    Args:
        message: what `sign_message` made.
        expected: the address that must have signed it; None for whoever it names.

    Raises:
        IntegrityError: the signature is missing, of another message or of another address.
        FormatError: the message can't be made canonical.
    """
    statement = {key: value for key, value in message.items() if key != "signature"}
    signer = statement.get("signer")
    if not isinstance(signer, str) or not _ADDRESS.fullmatch(signer):
        raise IntegrityError("message names no signer", fix="have it signed by its author")
    if recover(canonical(statement), message.get("signature", "")) != signer:
        raise IntegrityError(
            f"message wasn't signed by {signer}", fix="fetch it again from its author"
        )
    if expected is not None and signer != expected.lower():
        raise IntegrityError(
            f"message is signed by {signer}, expected {expected.lower()}",
            fix="use the store and the key of the same run",
        )
    del statement["signer"]
    return statement


def signed_bytes(signer: Signer, payload: Mapping[str, Any]) -> bytes:
    """A signed message as the bytes of a file: its canonical JSON."""
    return canonical(sign_message(signer, payload))


def read_signed(data: bytes, expected: str | None, *, where: str | None = None) -> Signed:
    """Parse and verify what `signed_bytes` made; every other byte string is refused.

    Args:
        data: the file's bytes.
        expected: as in `verify_message`.
        where: the file's name, for the error.

    Raises:
        FormatError: not the canonical JSON of a message.
        IntegrityError: as `verify_message`.
    """
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError("not a JSON message", where=where, fix="fetch it again") from error
    try:
        if not isinstance(message, dict) or canonical(message) != data:
            raise FormatError("not in canonical form", fix="fetch it again from its author")
        return Signed(verify_message(message, expected), message["signer"])
    except (FormatError, IntegrityError) as error:
        raise type(error)(error.what, where=where, fix=error.fix) from error


def _checked(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise FormatError(f"message is nested deeper than {_MAX_DEPTH}", fix="flatten it")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if -(2**63) <= value < 2**64:
            return value
        raise FormatError("integer in a message outside [-2**63, 2**64)", fix="write it as text")
    if isinstance(value, list | tuple):
        return [_checked(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise FormatError("key of a message isn't text", fix="use text keys")
        return {key: _checked(item, depth + 1) for key, item in value.items()}
    raise FormatError(
        f"a message can't hold {type(value).__name__}", fix="write it as an integer or as text"
    )


def _digest(message: bytes) -> bytes:
    return _keccak256(_PREFIX + str(len(message)).encode() + message)


def _address(key: coincurve.PublicKey) -> str:
    return "0x" + _keccak256(key.format(compressed=False)[1:])[-20:].hex()


def _keccak256(data: bytes) -> bytes:
    return keccak.new(digest_bits=256, data=data).digest()
