"""The messages between the engine and its child: a JSON header, then raw arrays.

Both sides import it, so it needs the standard library only. Invariant: a message is read whole or
not at all; a closed pipe is `EOFError`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from typing import Any

_SIZE_BYTES = 8
_MAX_HEADER = 1 << 30


class Link:
    """One end of two pipes; `send` may be called from several threads, `receive` from one.

    Args:
        reading, writing: file descriptors; the link owns them.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._reader = os.fdopen(reading, "rb", buffering=1 << 16)
        self._writing = writing
        self._lock = threading.Lock()

    def send(self, kind: str, blobs: Sequence[bytes] = (), **fields: Any) -> None:
        """Send one message.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        header = {"kind": kind, "blobs": [len(blob) for blob in blobs], **fields}
        data = json.dumps(header, separators=(",", ":")).encode()
        with self._lock:
            self._write(len(data).to_bytes(_SIZE_BYTES, "little") + data)
            for blob in blobs:
                self._write(blob)

    def receive(self) -> tuple[dict[str, Any], list[bytes]]:
        """The next message: header and arrays.

        Raises:
            EOFError: the other end is closed, perhaps in the middle of a message.
        """
        size = int.from_bytes(self._read(_SIZE_BYTES), "little")
        if size > _MAX_HEADER:
            raise EOFError(f"a header of {size} bytes is none of ours")
        header: dict[str, Any] = json.loads(self._read(size))
        return header, [self._read(length) for length in header.pop("blobs")]

    def close(self) -> None:
        """Close both pipes."""
        self._reader.close()
        with self._lock:
            if self._writing >= 0:
                os.close(self._writing)
                self._writing = -1

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._writing < 0:
                raise BrokenPipeError("the link is closed")
            view = view[os.write(self._writing, view) :]

    def _read(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) < size:
            raise EOFError("the pipe was closed")
        return data
