"""What the shardcast tests share: published versions, servers in threads, and a relay that lies."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import socketserver
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prime_core.shardcast.client import Client
from prime_core.shardcast.connection import Patience
from prime_core.shardcast.counting import Counters
from prime_core.shardcast.download import Settings
from prime_core.shardcast.library import Library, StoreLibrary
from prime_core.shardcast.relay import Puller
from prime_core.shardcast.server import Limits, Server
from prime_core.shardcast.shelf import Shelf
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import read_seal, write_policy

SIGNER = Signer(b"\x01" * 32)
OTHER = Signer(b"\x02" * 32)
RUN = "demo"
SHARD = 4096
SHARDS = 8
QUICK = Settings(
    connections=3, stall_s=60.0, wait_s=1, patience=Patience(5.0, least_bytes_per_s=1.0)
)


def weights_file(path: Path, fill: int = 0, size: int = SHARD * SHARDS - 200) -> Path:
    """A safetensors file whose bytes differ from shard to shard and with `fill`."""
    index = {"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    head = json.dumps(index).encode()
    data = bytes((n * 7 + n // 251 + fill) % 256 for n in range(size))
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)
    return path


def publish(
    folder: Path, version: int, *, fill: int | None = None, signer: Signer = SIGNER, run: str = RUN
) -> bytes:
    """Publish a version into the store in `folder`; returns its weights' bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    store = ObjectStore(str(folder))
    path = weights_file(folder / f"w{version}.safetensors", version if fill is None else fill)
    parent = read_seal(store, version - 1) if version else None
    nonce = b"\x03" * 32
    write_policy(
        store, version, parent, run, path, signer, shard_bytes=SHARD, nonce=nonce, linked=True
    )
    return path.read_bytes()


class SlowTrainer:
    """Publishes a version object by object, as a trainer does that somebody looks at closely."""

    def __init__(self, folder: Path, scratch: Path, version: int = 0) -> None:
        self.data = publish(scratch, version)
        self._from = scratch / layout.policy_dir(version)
        self._to = folder / layout.policy_dir(version)
        self._to.mkdir(parents=True)
        os.link(self._from / "weights.safetensors", self._to / "weights.safetensors")
        lines = [f"shard-{index:05d}.json" for index in range(SHARDS)]
        self._left = ["header.json", *lines, "seal.json"]

    def go_on(self, messages: int) -> None:
        """Write so many more messages."""
        for _ in range(messages):
            name = self._left.pop(0)
            shutil.copy(self._from / name, self._to / f".{name}")
            (self._to / f".{name}").rename(self._to / name)

    def finish(self) -> None:
        self.go_on(len(self._left))


@contextmanager
def serving(
    library: Library,
    *,
    port: int = 0,
    limits: Limits | None = None,
    refresh: Callable[[], bool] | None = None,
    ready: Callable[[Server], None] | None = None,
    counters: Counters | None = None,
) -> Iterator[str]:
    """A server in a thread of its own; yields its URL."""
    started: list[int] = []
    begun, loop = threading.Event(), asyncio.new_event_loop()
    server = Server(library, counters or Counters(), limits)

    async def main() -> None:
        started.append(await server.start("127.0.0.1", port))
        if ready is not None:
            ready(server)
        begun.set()
        try:
            while True:
                if refresh is not None and refresh():
                    server.bell.ring()
                await asyncio.sleep(0.01)
        finally:
            await server.close()

    task = loop.create_task(main())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(30)
    try:
        yield f"http://127.0.0.1:{started[0]}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


@contextmanager
def origin(folder: Path, **options: object) -> Iterator[str]:
    """An origin of the store in `folder`."""
    library = StoreLibrary(ObjectStore(str(folder)))

    def refresh() -> bool:
        library.drop_collected()
        return library.refresh()

    refresh()
    with serving(library, refresh=refresh, **options) as url:
        yield url


@contextmanager
def relay(
    upstreams: list[str], folder: Path, *, port: int = 0, keep: int = 5, budget: int | None = None
) -> Iterator[tuple[str, Shelf]]:
    """A relay; yields its URL and its shelf."""
    shelf = Shelf(folder, SIGNER.address, RUN, keep=keep, budget=budget)
    client = Client(upstreams, shelf, settings=QUICK)
    pullers: list[Puller] = []

    def ready(server: Server) -> None:
        pullers.append(Puller(client, keep, server.bell.ring))
        pullers[0].start()

    with serving(shelf, port=port, ready=ready) as url:
        try:
            yield url, shelf
        finally:
            pullers[0].close()


def client(
    relays: list[str], folder: Path, settings: Settings = QUICK, **options: object
) -> Client:
    """A client with a shelf of its own."""
    return Client(relays, Shelf(folder, SIGNER.address, RUN, **options), settings=settings)


def prefer(one: Client, address: str) -> None:
    """Make a client ask this relay first, as if it had been the fastest by far."""
    for each in one.relays.addresses:
        one.relays[each].bandwidth = 1e15 if each == address else 1e3


def until(condition: Callable[[], object]) -> None:
    """Wait for what other threads bring about."""
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def raw(url: str, data: bytes) -> bytes:
    """Send bytes to a server; everything that it answers until it closes."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as sock:
        sock.sendall(data)
        answer = b""
        while block := sock.recv(65536):
            answer += block
    return answer


class Liar(socketserver.ThreadingTCPServer):
    """A relay over an honest library that lies in one way."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, library: Library, kind: str) -> None:
        self.library, self.kind = library, kind
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _LiarHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Liar:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _LiarHandler(socketserver.StreamRequestHandler):
    server: Liar

    def handle(self) -> None:
        try:
            while self._one():
                pass
        except OSError:
            return

    def _one(self) -> bool:
        line = self.rfile.readline().decode()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        if not line:
            return False
        target = line.split()[1]
        self.server.asked.append(target)
        kind, library = self.server.kind, self.server.library
        if kind == "head bomb":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-Bomb: " + b"b" * 4000 + b"\r\n")
        if kind == "redirect":
            self.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n")
            return self._body(b"")
        if target.startswith("/versions"):
            listed = [[each.version, each.messages, each.sealed] for each in library.listing()]
            return self._answer(json.dumps({"versions": listed}).encode())
        version = int(target.split("/")[2])
        if "delta" in target:
            if kind == "wrong delta":
                return self._answer(zlib.compress(bytes(SHARD)))
            self.wfile.write(b"HTTP/1.1 404 Not Found\r\n")
            return self._body(b"")
        if "/manifest" in target:
            return self._manifest(version, int(target.partition("from=")[2].split("&")[0]))
        span = library.span(version, int(target[-9:-4]))
        assert span is not None
        with span.path.open("rb") as file:
            file.seek(span.offset)
            return self._shard(file.read(span.size))

    def _manifest(self, version: int, start: int) -> bool:
        kind = self.server.kind
        asked = 0 if kind == "stale version" else version
        messages = [*(self.server.library.messages(asked, 0) or ())][start:]
        if kind == "forged manifest" and messages:
            message = json.loads(messages[0])
            message["run_id"] = "mine"
            messages[0] = json.dumps(message, sort_keys=True, separators=(",", ":")).encode()
        if kind == "endless manifest":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
            while True:
                self.wfile.write(b"x" * 65536)
        if kind == "error page":
            return self._answer(b"<html>" + b"Bad Gateway " * 300)
        return self._answer(b"".join(message + b"\n" for message in messages))

    def _shard(self, data: bytes) -> bool:
        kind = self.server.kind
        if kind == "wrong bytes":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if kind == "wrong size":
            data = data[:-1]
        if kind == "error page for shards":
            data = (b"<html>Bad Gateway" * len(data))[: len(data)]
        if kind == "endless body":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                self.wfile.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        if kind == "breaks off":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
            self.wfile.write(data[: len(data) // 2])
            return False
        if kind == "trickle":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
            for byte in data:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        if kind == "silence":
            time.sleep(1000)
        return self._answer(data)

    def _answer(self, body: bytes) -> bool:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        return self._body(body)

    def _body(self, body: bytes) -> bool:
        self.wfile.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return True
