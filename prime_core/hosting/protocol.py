"""The messages between a pool and its hosts: length-prefixed JSON, strict in both directions.

Used by the channel of the pool and by the loop of the host; docs/reference/host-protocol.md is its
description. Invariant: whatever bytes arrive, decoding gives a JSON object or a `FormatError`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from prime_core.api.errors import FormatError

PROTOCOL_VERSION = 1
MAX_MESSAGE = 64 << 20  # bytes of one message; a LiveCodeBench task with its tests has up to 20 MiB
PREFIX = 4  # bytes of the big-endian length

ERROR_KINDS = ("crash", "timeout", "memory", "protocol", "exception", "value")


def encode(message: dict[str, Any]) -> bytes:
    """One message as it goes over the pipe, its length first.

    ASCII only, so that lone surrogates survive as escapes; NaN and infinity are refused.

    Raises:
        FormatError: a value that isn't JSON, or a message above `MAX_MESSAGE`.
    """
    try:
        body = _ENCODER.encode(message).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"a message can't be written as JSON: {error}") from error
    if len(body) > MAX_MESSAGE:
        raise FormatError(f"a message of {len(body)} bytes is above the limit of {MAX_MESSAGE}")
    return len(body).to_bytes(PREFIX, "big") + body


def decode(body: bytes | bytearray | memoryview) -> dict[str, Any]:
    """The JSON object in the body of one message.

    Raises:
        FormatError: not JSON, not an object, or numbers that aren't finite.
    """
    try:
        message = _DECODER.decode(str(body, "ascii"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"a message isn't JSON: {error}") from error
    if not isinstance(message, dict):
        raise FormatError(f"a message is a {type(message).__name__}, not an object")
    return message


class Frames:
    """Cuts a stream of bytes into message bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Add bytes; returns the messages that are now whole.

        Raises:
            FormatError: a length above `MAX_MESSAGE` or a body that isn't a message.
        """
        self._buffer += data
        messages: list[dict[str, Any]] = []
        start = 0
        while len(self._buffer) - start >= PREFIX:
            size = int.from_bytes(self._buffer[start : start + PREFIX], "big")
            if size > MAX_MESSAGE:
                raise FormatError(f"a message of {size} bytes is above the limit of {MAX_MESSAGE}")
            end = start + PREFIX + size
            if len(self._buffer) < end:
                break
            messages.append(decode(bytes(self._buffer[start + PREFIX : end])))
            start = end
        if start:
            del self._buffer[:start]
        return messages


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number that may cross the boundary")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # "1e999" is valid JSON and reads as infinity
        raise ValueError(f"{text} is too large")
    return value


_ENCODER = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=True
)
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
