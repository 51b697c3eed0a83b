"""The processes that serve: `run_origin` and `run_relay`, from their arguments to SIGTERM.

`prime_core.cli.shardcast` calls them. Each runs one event loop for its sockets; what a relay
fetches, it fetches in threads.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from prime_core.api.errors import RunError
from prime_core.shardcast.addresses import split_address
from prime_core.shardcast.client import Client
from prime_core.shardcast.counting import Counters
from prime_core.shardcast.download import Settings
from prime_core.shardcast.folder import held
from prime_core.shardcast.fronting import Front
from prime_core.shardcast.library import Library, StoreLibrary
from prime_core.shardcast.members import Members, read_members
from prime_core.shardcast.relay import Puller
from prime_core.shardcast.server import Limits, MetricsPage, Server
from prime_core.shardcast.shelf import Shelf
from prime_core.store.objects import ObjectStore

logger = logging.getLogger(__name__)

_EAGER_S = 0.005  # how soon an origin notices a new line while somebody waits for it
_LAZY_S = 0.1
_COLLECT_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a process listens: HOST:PORT for clients, and one for metrics or None."""

    address: str
    metrics: str | None = None
    limits: Limits = field(default_factory=Limits)


def run_origin(store: ObjectStore, listening: Listening) -> None:
    """Serve a run's store until SIGTERM or SIGINT; blocks.

    Raises:
        RunError: the address is taken.
        StoreError: the store isn't on this disk.
    """
    library = StoreLibrary(store)
    library.refresh()

    async def follow(server: Server) -> None:
        loop = asyncio.get_running_loop()
        collect, author = loop.time(), None
        while True:
            if library.refresh():
                server.bell.ring()
            if author is None and (author := library.author()):
                logger.info("relays and clients need --signer %s --run-id %s", *author)
            if loop.time() - collect > _COLLECT_EVERY:
                library.drop_collected()
                collect = loop.time()
            await asyncio.sleep(_EAGER_S if server.bell.waiters else _LAZY_S)

    asyncio.run(_serve("origin", library, Counters(), listening, follow))


def run_relay(
    upstreams: list[str],
    directory: Path,
    signer: str,
    run_id: str,
    listening: Listening,
    *,
    keep: int = 5,
    budget: int | None = None,
    settings: Settings | None = None,
    front: Front | None = None,
    members: Path | None = None,
) -> None:
    """Relay versions until SIGTERM or SIGINT; blocks.

    Args:
        front: nginx and firewall files to write, and to keep in step with `members`.
        members: `members.json`; without it nobody is let in through the front.

    Raises:
        RunError: the address is taken, or the front's files can't be written.
        StoreError: the directory is another process's, signer's or run's.
        FormatError: an upstream is no URL, or the members can't be read.
    """
    if front is not None:
        front.check()
    counters = Counters()
    shelf = Shelf(directory, signer, run_id, keep=keep, budget=budget)
    client = Client(upstreams, shelf, settings=settings, counters=counters)

    async def pull(server: Server) -> None:
        puller = Puller(client, keep, server.bell.ring)
        puller.start()
        stop = threading.Event()
        if front is not None and members is not None:
            threading.Thread(target=front.follow, args=(members, stop), daemon=True).start()
        try:
            await asyncio.Event().wait()
        finally:
            stop.set()
            await asyncio.to_thread(puller.close)

    with held(directory):
        shelf.find()
        if front is not None:
            front.write(read_members(members) if members else Members())
            front.enforce()
        asyncio.run(_serve("relay", shelf, counters, listening, pull))


async def _serve(
    what: str,
    library: Library,
    counters: Counters,
    listening: Listening,
    work: Callable[[Server], Awaitable[None]],
) -> None:
    """Serve while `work` runs, until a signal; what `work` raises ends it too."""
    _allow_many_files()
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        server = Server(library, counters, listening.limits)
        stack.push_async_callback(server.close)
        host, port = split_address(listening.address)
        port = await _listen(server, host, port)
        if listening.metrics is not None:
            page = MetricsPage(library, counters, listening.limits)
            stack.push_async_callback(page.close)
            await _listen(page, *split_address(listening.metrics))
        logger.info("%s serves at http://%s:%d", what, host, port)
        working = asyncio.ensure_future(work(server))
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        waiting = asyncio.ensure_future(stopped.wait())
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if working.done():
            await working
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        logger.info(
            "%s ends after %d bytes of shards",
            what,
            int(counters["shard_bytes_sent_total"]),
        )


async def _listen(server: Server, host: str, port: int) -> int:
    try:
        return await server.start(host, port)
    except OSError as error:
        raise RunError(
            f"can't listen: {error.strerror}",
            where=f"{host}:{port}",
            fix="choose another --listen address",
        ) from error


def _allow_many_files() -> None:
    """As many open sockets as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
