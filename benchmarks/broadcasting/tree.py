"""Our processes for the benchmark: a run to publish, origin, relays, clients, and their times."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prime_core.signing import Signer
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import write_policy

SIGNER = Signer(b"\x01" * 32)
RUN_TOML = """
[run]
dir = "{dir}"
id = "bench"
[model]
path = "{dir}"
[[environments]]
use = "arithmetic"
"""


@dataclass(frozen=True)
class Fetched:
    """What one client saw; seconds of the monotonic clock, which all processes share."""

    first_shard: float
    done: float
    max_rss_mb: float
    cpu_s: float
    sha256: str | None = None


def make_weights(path: Path, size: int) -> None:
    """A safetensors file of `size` random bytes and its header."""
    index = {"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    head = json.dumps(index).encode()
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for _ in range(size // 2**20):
            file.write(os.urandom(2**20))


def warm_up(folder: Path, size: int) -> None:
    """Touch as much memory as a transfer's files take.

    A virtual machine's host may have to find it first, which whoever writes first would pay for.
    """
    block = bytes(2**20)
    with (folder / "warm").open("wb") as file:
        for _ in range(size // 2**20):
            file.write(block)
    (folder / "warm").unlink()


def make_run(folder: Path) -> None:
    """A run directory that an origin takes."""
    folder.mkdir(parents=True)
    (folder / "run.toml").write_text(RUN_TOML.format(dir=folder))


def publish(folder: Path, weights: Path, shard_bytes: int) -> float:
    """Publish as version 0; the monotonic second of the call."""
    store = ObjectStore(str(folder))
    called = time.monotonic()
    write_policy(store, 0, None, "bench", weights, SIGNER, shard_bytes=shard_bytes, linked=True)
    return called


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def started(words: Sequence[str | Path], *, inside: Sequence[str] = ()) -> Iterator[None]:
    """A `prime-core` process for as long as the block lasts."""
    command = [*inside, sys.executable, "-m", "prime_core", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def origin(run_dir: Path, address: str) -> list[str | Path]:
    """The command of an origin."""
    return ["origin", run_dir, "--listen", address, "--rate", "0"]


def relay(upstreams: Sequence[str], folder: Path, address: str) -> list[str | Path]:
    """The command of a relay."""
    up = ",".join(f"http://{each}" for each in upstreams)
    identity = ["--signer", SIGNER.address, "--run-id", "bench"]
    return [
        "relay",
        "--upstream",
        up,
        "--dir",
        folder,
        "--listen",
        address,
        "--rate",
        "0",
        *identity,
    ]


def wait_for(address: str, path: str = "/health", contains: bytes = b"ok") -> None:
    """Until a server of this machine answers so."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
                if contains in answer.read():
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"{address}{path} never answered")


class Client:
    """A client process of the benchmark: ready before the version is published.

    Args:
        inside: a command prefix, e.g. `ip netns exec NAME`.
        rule: how it chooses relays.
    """

    def __init__(
        self,
        relays: Sequence[str],
        folder: Path,
        *,
        inside: Sequence[str] = (),
        rule: str = "sampled",
    ) -> None:
        words = [sys.executable, __file__, ",".join(relays), str(folder), rule]
        self._process = subprocess.Popen(
            [*inside, *words], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )

    def ready(self) -> None:
        """Until it has measured its relays."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == "ready\n", line

    def go(self) -> None:
        """Let it ask for the version."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> Fetched:
        """Its times, at its end."""
        told, _ = self._process.communicate(timeout=600)
        return Fetched(**json.loads(told))


def client_main() -> None:
    """The client process: probe, say so, fetch version 0, tell the times."""
    import threading

    from prime_core.shardcast.client import Client as Fetching
    from prime_core.shardcast.shelf import Shelf

    relays, folder, rule = sys.argv[1:4]
    shelf = Shelf(Path(folder), SIGNER.address, "bench")
    fetching = Fetching([f"http://{each}" for each in relays.split(",")], shelf, rule=rule)  # type: ignore[arg-type]
    fetching.probe()
    print("ready", flush=True)
    sys.stdin.readline()
    download = fetching.download(0)
    first: list[float] = []

    def watch() -> None:
        while not download.fraction:
            time.sleep(0.002)
        first.append(time.monotonic())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    download.run()
    done = time.monotonic()
    watcher.join()
    used = resource.getrusage(resource.RUSAGE_SELF)
    times = {
        "first_shard": first[0],
        "done": done,
        "max_rss_mb": used.ru_maxrss / 1024,
        "cpu_s": used.ru_utime + used.ru_stime,
    }
    print(json.dumps(times))


if __name__ == "__main__":
    client_main()
