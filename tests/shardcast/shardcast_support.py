"""What the shardcast tests share: published versions, servers and relays in threads."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import threading
import time
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

RUN_TOML = """
[run]
dir = "{dir}"
id = "demo"
[model]
path = "{dir}"
[[environments]]
use = "arithmetic"
"""


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
