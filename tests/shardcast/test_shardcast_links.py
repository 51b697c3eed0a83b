"""Links that lose packets, and links that are long: the version comes, in few round trips."""

from __future__ import annotations

import asyncio
import hashlib
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shardcast_network import CLIENTS, HOST, SERVER, run
from shardcast_support import (
    QUICK,
    RUN,
    RUN_TOML,
    SHARDS,
    SIGNER,
    client,
    origin,
    publish,
    relay,
    until,
    weights_file,
)

from prime_core.shardcast.counting import Counters
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import write_policy

LOSS = """
table inet loss {
  chain input {
    type filter hook input priority 0;
    tcp sport 8470 numgen random mod 100 < 8 counter drop
    tcp dport 8470 numgen random mod 100 < 8 counter drop
  }
}
"""


def test_a_version_comes_over_links_that_lose_packets(network: None, tmp_path: Path) -> None:
    run_dir, rules = tmp_path / "run", tmp_path / "loss.nft"
    run_dir.mkdir()
    (run_dir / "run.toml").write_text(RUN_TOML.format(dir=run_dir))
    weights = weights_file(tmp_path / "weights", size=2 * 10**6)
    write_policy(
        ObjectStore(str(run_dir)), 0, None, RUN, weights, SIGNER, shard_bytes=10**5, linked=True
    )
    rules.write_text(LOSS)
    for host in (SERVER, CLIENTS):
        done = run("nft", "-f", rules, inside=host)
        assert done.returncode == 0, done.stderr
    words = ["ip", "netns", "exec", SERVER, sys.executable, "-m", "prime_core", "origin"]
    words += [str(run_dir), "--listen", f"{HOST}:8470"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as serving:
        try:
            taking = [sys.executable, "-m", "prime_core", "fetch", "0", "--relays", f"{HOST}:8470"]
            taking += ["--dir", tmp_path / "client", "--signer", SIGNER.address, "--run-id", RUN]
            done = run(*taking, inside=CLIENTS)
            lost = run("nft", "list", "table", "inet", "loss", inside=CLIENTS).stdout
        finally:
            serving.terminate()
    assert done.returncode == 0, done.stderr
    assert re.search(r"sport 8470 numgen .* counter packets [1-9]", lost), lost
    held = Path(done.stdout.strip()).read_bytes()
    assert hashlib.sha256(held).digest() == hashlib.sha256(weights.read_bytes()).digest()


@contextmanager
def far_away(url: str, delay_s: float) -> Iterator[str]:
    """A proxy that holds every byte back for so long, each way, as a long link does."""
    host, port = url.removeprefix("http://").split(":")
    loop, ports = asyncio.new_event_loop(), queue.Queue[int]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                loop.call_later(delay_s, writer.write, data)
        loop.call_later(delay_s, writer.close)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, to_them = await asyncio.open_connection(host, int(port))
        with suppress(asyncio.CancelledError):
            await asyncio.gather(carry(reader, to_them), carry(theirs, writer))
        for each in (writer, to_them):
            each.transport.abort()

    async def main() -> None:
        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            ports.put(server.sockets[0].getsockname()[1])
            await server.serve_forever()

    def work() -> None:
        task = loop.create_task(main())
        loop.call_soon(stops.put, task)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    stops = queue.Queue[asyncio.Task[None]]()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield f"http://127.0.0.1:{ports.get()}"
    finally:
        loop.call_soon_threadsafe(stops.get().cancel)
        thread.join()


def test_a_long_link_costs_few_round_trips(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    counters = Counters()
    with (
        origin(tmp_path / "run", counters=counters) as up,
        far_away(up, 0.1) as long,
        relay([long], tmp_path / "relay") as (url, shelf),
    ):
        until(lambda: shelf.whole() == [0])
        # All lines come in one answer: what is asked for is the list, the messages, the shards.
        asked = counters['requests_total{status="200"}']
        assert asked <= SHARDS + 4
        assert client([url], tmp_path / "client", QUICK).fetch(0).weights.read_bytes() == data
