"""The HTTP server of origin and relays: one event loop, kernel sendfile, bounded everything.

`serving` runs it. It names files only through its library, waits for nobody longer than its limits
say, and drops the connection that has been idle longest when there are too many.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from dataclasses import dataclass
from typing import BinaryIO

from prime_core.shardcast.bell import Bell
from prime_core.shardcast.counting import Counters, RateLimit
from prime_core.shardcast.crowd import Crowd
from prime_core.shardcast.deltas import DeltaShop
from prime_core.shardcast.library import Library, Span
from prime_core.shardcast.requests import HEAD_LIMIT, BadRequest, Request, parse_request

logger = logging.getLogger(__name__)

PROBE_BYTES = 256 * 1024  # the file that clients measure a relay with
MANIFEST_BYTES = 4 * 2**20  # of one answer; more is asked for again
MAX_WAIT_S = 25

_PROBE = bytes(PROBE_BYTES)
_MANIFEST = re.compile(r"/policies/(\d{6,10})/manifest")
_DELTA = re.compile(r"/policies/(\d{6,10})/shard-(\d{5,6})\.delta-(\d{6,10})")
_SHARD = re.compile(r"/policies/(\d{6,10})/shard-(\d{5,6})\.bin")
_SOFT = (404, 410, 416)  # the connection goes on
_REASONS = {
    200: "OK",
    206: "Partial Content",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    410: "Gone",
    413: "Content Too Large",
    416: "Range Not Satisfiable",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may cost.

    Attributes:
        connections: at most, of all clients; one more drops another, as `Crowd` says.
        idle_s: a connection without a whole request is closed after this.
        least_bytes_per_s: a client that reads more slowly is dropped.
        requests_per_s: of one address; 0 where a proxy in front counts.
        deltas: whether deltas are made, which takes processor time for others' bandwidth.
    """

    connections: int = 4096
    idle_s: float = 60.0
    least_bytes_per_s: float = 16 * 1024
    requests_per_s: float = 1000.0
    deltas: bool = False


class Server:
    """Serves one library until it's closed."""

    def __init__(self, library: Library, counters: Counters, limits: Limits | None = None) -> None:
        self._library, self._counters = library, counters
        self._limits = limits or Limits()
        self._deltas = DeltaShop() if self._limits.deltas else None
        self._rates = RateLimit(self._limits.requests_per_s)
        self._crowd = Crowd(self._limits.connections)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._bell: Bell | None = None

    @property
    def bell(self) -> Bell:
        """To ring when the library has more; only once started."""
        assert self._bell is not None
        return self._bell

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._bell = Bell(asyncio.get_running_loop())
        self._server = await asyncio.start_server(
            self._accept, host, port, limit=HEAD_LIMIT, backlog=1024
        )
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Stop listening, end every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._deltas is not None:
            self._deltas.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        address = str((writer.get_extra_info("peername") or ("?",))[0])
        self._crowd.enter(writer, address)
        try:
            await self._serve(reader, writer, address)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, OSError):
            self._counters.add("connections_broken_total")
        except asyncio.CancelledError:
            logger.debug("a connection was ended by the server's end")
        finally:
            self._tasks.discard(task)
            self._crowd.leave(writer)
            writer.transport.abort() if writer.is_closing() else writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        while True:
            self._crowd.waits(writer)
            try:
                async with asyncio.timeout(self._limits.idle_s):
                    head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                await self._refuse(writer, 431, False)
                return
            except asyncio.IncompleteReadError as error:
                if error.partial:
                    raise
                return  # it has had what it wanted
            self._crowd.works(writer)
            request = None
            try:
                request = parse_request(head)
                if not self._rates.allows(address):
                    raise BadRequest(429)
                await self._answer(request, writer)
            except BadRequest as error:
                keeps = request is not None and request.keep_alive and error.status in _SOFT
                await self._refuse(writer, error.status, keeps)
                if not keeps:
                    return
                continue
            if not request.keep_alive:
                return

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if found := _MANIFEST.fullmatch(request.path):
            await self._send(writer, request, await self._manifest(int(found[1]), request))
        elif found := _SHARD.fullmatch(request.path):
            await self._shard(writer, request, int(found[1]), int(found[2]))
        elif found := _DELTA.fullmatch(request.path):
            version, index, base = (int(each) for each in found.groups())
            await self._send(writer, request, await self._delta(version, index, base))
        elif request.path == "/versions":
            await self._send(writer, request, await self._versions(request))
        elif request.path == "/probe.bin":
            await self._send(writer, request, _PROBE)
        elif request.path == "/health":
            await self._send(writer, request, b"ok\n")
        else:
            raise BadRequest(404)

    async def _versions(self, request: Request) -> bytes:
        """The listing, once it holds a version above `after` or the wait is over."""
        after = request.number("after", 0, 2**31) if "after" in request.query else -1
        deadline = _now() + request.number("wait", 0, MAX_WAIT_S)
        while True:
            listed = self._library.listing()
            left = deadline - _now()
            if left <= 0 or any(each.version > after for each in listed):
                break
            await self.bell.wait(left)
        return json.dumps(
            {"versions": [[each.version, each.messages, each.sealed] for each in listed]}
        ).encode()

    async def _manifest(self, version: int, request: Request) -> bytes:
        """Messages from number `from` on, one a line, once there are any or the wait is over."""
        start = request.number("from", 0, 2**31)
        deadline = _now() + request.number("wait", 0, MAX_WAIT_S)
        while True:
            messages = self._library.messages(version, start)
            if messages is None and self._library.gone(version):
                raise BadRequest(410)
            left = deadline - _now()
            if messages or left <= 0:
                break
            await self.bell.wait(left)
        if messages is None:
            raise BadRequest(404)
        taken: list[bytes] = []
        size = 0
        for message in messages:
            if taken and size + len(message) > MANIFEST_BYTES:
                break
            taken.append(message + b"\n")
            size += len(message) + 1
        return b"".join(taken)

    async def _shard(
        self, writer: asyncio.StreamWriter, request: Request, version: int, index: int
    ) -> None:
        file, span = self._open(version, index)
        with file:
            first, count = request.span(span.size)
            if os.fstat(file.fileno()).st_size < span.offset + span.size:
                raise BadRequest(410)
            extra = ""
            if request.range is not None:
                extra = f"Content-Range: bytes {first}-{first + count - 1}/{span.size}\r\n"
            writer.write(_head(206 if extra else 200, count, request.keep_alive, extra))
            self._counters.add(f'requests_total{{status="{206 if extra else 200}"}}')
            if request.head_only:
                return
            async with asyncio.timeout(30 + count / self._limits.least_bytes_per_s):
                await writer.drain()
                loop = asyncio.get_running_loop()
                sent = await loop.sendfile(writer.transport, file, span.offset + first, count)
            self._counters.add("shard_bytes_sent_total", sent)
            if sent != count:  # the file shrank: the peer must not take what follows for its rest
                raise ConnectionResetError("short file")

    def _open(self, version: int, index: int) -> tuple[BinaryIO, Span]:
        """A shard's file, open; where it's given its final name meanwhile, under that one."""
        for _ in range(2):
            span = self._library.span(version, index)
            if span is None:
                raise BadRequest(410 if self._library.gone(version) else 404)
            try:
                return span.path.open("rb"), span
            except FileNotFoundError:
                continue
        raise BadRequest(410)

    async def _delta(self, version: int, index: int, base: int) -> bytes:
        new, old = self._library.span(version, index), self._library.span(base, index)
        made = None
        if self._deltas is not None and new and old and new.size == old.size and base < version:
            made = await self._deltas.get((version, base, index), new, old)
        if made is None:
            raise BadRequest(404)
        self._counters.add("delta_bytes_sent_total", len(made))
        return made

    async def _send(self, writer: asyncio.StreamWriter, request: Request, body: bytes) -> None:
        self._counters.add('requests_total{status="200"}')
        writer.write(_head(200, len(body), request.keep_alive))
        if not request.head_only:
            writer.write(body)
        async with asyncio.timeout(30 + len(body) / self._limits.least_bytes_per_s):
            await writer.drain()

    async def _refuse(self, writer: asyncio.StreamWriter, status: int, keeps: bool) -> None:
        self._counters.add(f'requests_total{{status="{status}"}}')
        writer.write(_head(status, 0, keeps))
        async with asyncio.timeout(10):
            await writer.drain()


class MetricsPage(Server):
    """`/metrics` for the operator, on an address of its own: clients have no business there."""

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path != "/metrics":
            raise BadRequest(404)
        await self._send(writer, request, self._counters.text().encode())


def _head(status: int, length: int, keep_alive: bool, extra: str = "") -> bytes:
    connection = "" if keep_alive else "Connection: close\r\n"
    first = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Length: {length}\r\n"
    return f"{first}{extra}{connection}\r\n".encode()


def _now() -> float:
    return asyncio.get_running_loop().time()
