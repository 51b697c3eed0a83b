"""One HTTP connection to a relay, read with a deadline at every byte.

Download threads own one per relay. Blocking sockets and one buffer: the bytes go from the kernel to
the hash and the file without a copy in between, and nothing that a relay sends makes it wait longer
or hold more than the caller allows.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from prime_core.shardcast.answers import parse_address, parse_head
from prime_core.shardcast.relay_errors import (
    Cancelled,
    RelayError,
    RelayLacks,
    RelayLied,
    RelayUnverified,
)

__all__ = [
    "Cancelled",
    "Connection",
    "Patience",
    "RelayError",
    "RelayLacks",
    "RelayLied",
    "RelayUnverified",
    "parse_address",
]

HEAD_LIMIT = 16 * 1024
BUFFER = 512 * 1024
_TICK_S = 0.5  # how soon a cancelled transfer ends
_LUMP = 256 * 1024  # from a link this fast, so much is waited for: each waking costs
_FAST = 64 * 2**20  # bytes/s


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a relay may take.

    Attributes:
        connect_s: for a connection, and for the head of an answer beyond what was asked to wait.
        least_bytes_per_s: over every `window_s` of a body.
    """

    connect_s: float = 10.0
    least_bytes_per_s: float = 64 * 1024
    window_s: float = 8.0


class Connection:
    """A connection that is opened on use and again where it broke.

    Args:
        address: the relay's URL.
        tls: verifies `https` relays; the system's authorities unless given.
    """

    def __init__(
        self, address: str, patience: Patience | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.address = address
        self._scheme, self._host, self._port, self._prefix = parse_address(address)
        self._patience = patience or Patience()
        self._tls = tls
        self._socket: socket.socket | None = None
        self._ahead = b""
        self._buffer = memoryview(bytearray(BUFFER))

    def get(
        self,
        target: str,
        limit: int,
        *,
        wait_s: float = 0.0,
        late_s: float | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> bytes:
        """A small body.

        Args:
            target: path and query.
            limit: more bytes than this are a lie.
            wait_s: how long the relay was asked to hold its answer.
            late_s: how much later it may come; as long as a connection may take unless given.
            cancelled: asked now and then while nothing comes.

        Raises:
            Cancelled: `cancelled` said so.
            RelayError, RelayLied, RelayLacks: as the classes say.
        """
        late = self._patience.connect_s if late_s is None else late_s
        size = self._ask(target, wait_s + late, cancelled)
        if size > limit:
            self.close()
            raise RelayLied(f"answer of {size} bytes, allowed are {limit}", where=self.address)
        taken = bytearray()
        self._body(size, taken.extend, cancelled)
        return bytes(taken)

    def get_into(
        self,
        target: str,
        size: int,
        take: Callable[[memoryview], None],
        cancelled: Callable[[], bool] | None = None,
        *,
        shorter: bool = False,
        start: int = 0,
    ) -> None:
        """A body of exactly `size` bytes (or fewer, if `shorter`), handed on as it comes.

        With a `start`, those bytes of the target from there on, asked for as a range.

        Raises:
            Cancelled: `cancelled` said so.
            RelayError, RelayLied, RelayLacks: as the classes say; what `take` raises passes.
        """
        length = self._ask(target, self._patience.connect_s, cancelled, start)
        if length != size and not (shorter and length < size):
            self.close()
            raise RelayLied(f"{length} bytes where {size} belong", where=self.address)
        self._body(length, take, cancelled)

    def close(self) -> None:
        """Close it; the next request opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._ahead = b""

    def __enter__(self) -> Connection:
        """For `with`: closed at its end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(
        self, target: str, within_s: float, cancelled: Callable[[], bool] | None, start: int = 0
    ) -> int:
        """Send a request, read the head of the answer; the length of its body."""
        reused = self._socket is not None
        try:
            return self._ask_once(target, within_s, cancelled, start)
        except (RelayLied, RelayLacks, RelayUnverified):
            raise
        except RelayError:
            if not reused:
                raise
        # The relay may have closed an idle connection; that is no fault.
        return self._ask_once(target, within_s, cancelled, start)

    def _ask_once(
        self, target: str, within_s: float, cancelled: Callable[[], bool] | None, start: int
    ) -> int:
        deadline = time.monotonic() + within_s
        try:
            if self._socket is None:
                self._open()
            assert self._socket is not None
            part = f"Range: bytes={start}-\r\n" if start else ""
            head_line = f"GET {self._prefix}{target} HTTP/1.1\r\nHost: {self._host}\r\n"
            self._socket.settimeout(self._patience.connect_s)
            self._socket.sendall(f"{head_line}{part}\r\n".encode())
            head = self._head(deadline, cancelled)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise RelayUnverified(error.verify_message, where=self.address) from error
        except OSError as error:
            self.close()
            raise self._broken(error) from error
        except Cancelled:
            self.close()
            raise
        return self._length(head, target, 206 if start else 200)

    def _open(self) -> None:
        plain = socket.create_connection((self._host, self._port), self._patience.connect_s)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._scheme == "https":
            context = self._tls or ssl.create_default_context()
            try:
                self._socket = context.wrap_socket(plain, server_hostname=self._host)
            except OSError:
                plain.close()
                raise
        else:
            self._socket = plain

    def _head(self, deadline: float, cancelled: Callable[[], bool] | None) -> bytes:
        assert self._socket is not None
        while (end := self._ahead.find(b"\r\n\r\n")) < 0:
            if len(self._ahead) > HEAD_LIMIT:
                raise OSError("the answer's head has no end")
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            if cancelled is not None and cancelled():
                raise Cancelled
            self._socket.settimeout(min(left, _TICK_S))
            try:
                count = self._socket.recv_into(self._buffer[: 64 * 1024])
            except TimeoutError:
                continue
            if count == 0:
                raise ConnectionResetError("the relay closed the connection")
            self._ahead += bytes(self._buffer[:count])
        head, self._ahead = self._ahead[:end], self._ahead[end + 4 :]
        return head

    def _length(self, head: bytes, target: str, good: int) -> int:
        answer = parse_head(head)
        if answer is None:
            self.close()
            raise RelayLied("its answer has no status or no length", where=self.address)
        code, length = answer
        if code == good:
            return length
        if length:
            self.close()  # an error page isn't read
        if code in (404, 410, 425, 429, 503):
            raise RelayLacks(f"{code} for {target}", where=self.address, gone=code == 410)
        raise RelayError(f"{code} for {target}", where=self.address)

    def _body(
        self,
        size: int,
        take: Callable[[memoryview], None],
        cancelled: Callable[[], bool] | None,
    ) -> None:
        assert self._socket is not None
        try:
            ahead = memoryview(self._ahead[:size])
            self._ahead = self._ahead[size:]
            if ahead:
                take(ahead)
            left = size - len(ahead)
            begun = since = time.monotonic()
            had, lump = left, 1
            self._socket.settimeout(_TICK_S)
            while left > 0:
                if cancelled is not None and cancelled():
                    raise Cancelled
                try:
                    count = self._socket.recv_into(self._buffer[: min(left, BUFFER)])
                except TimeoutError:
                    count = -1
                now = time.monotonic()
                if count == 0:
                    raise ConnectionResetError("the relay closed the connection")
                if count > 0:
                    take(self._buffer[:count])
                    left -= count
                    lump = self._wake_at(lump, size - left, left, now - begun)
                if now - since > self._patience.window_s:
                    if (had - left) / (now - since) < self._patience.least_bytes_per_s and left:
                        raise TimeoutError("slower than the least that is allowed")
                    since, had = now, left
        except OSError as error:
            self.close()
            raise self._broken(error) from error
        except BaseException:
            self.close()
            raise

    def _wake_at(self, lump: int, came: int, left: int, seconds: float) -> int:
        """Let the kernel wake us at so many bytes at once; `lump` is what it does now."""
        fast = self._scheme == "http" and came > _FAST * max(seconds, 0.001)
        wanted = max(1, min(left, _LUMP)) if fast else 1
        if wanted != lump:
            assert self._socket is not None
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
        return wanted

    def _broken(self, error: OSError) -> RelayError:
        return RelayError(
            f"the transfer broke: {error.strerror or error or type(error).__name__}",
            where=self.address,
        )
