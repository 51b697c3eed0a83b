"""Networks of shaped links on one machine: a namespace a host, tbf on both ends of its link.

Needs root, `ip` and `tc`; no netem. Every host hangs at one bridge, so that a link's rate bounds
what its host sends and what it receives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from broadcasting.tree import Client, make_run, origin, publish, relay, started

PORT = 8470
SHARD = 4 * 2**20
LOSS = """\
add table inet loss
add chain inet loss input {{ type filter hook input priority 0; }}
add rule inet loss input meta l4proto tcp numgen random mod 1000 < {loss} drop
"""
_PREFIX = f"psc{os.getpid() % 10000}"


def possible() -> bool:
    """Whether this machine lets us make namespaces and shape links."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        return False
    name = f"{_PREFIX}-try"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return done.returncode == 0


@contextmanager
def network(rates: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """Hosts with links of so many Mbit/s; yields their addresses."""
    names = list(rates)
    switch = f"{_PREFIX}-sw"
    addresses = {name: f"10.91.0.{number + 1}" for number, name in enumerate(names)}
    try:
        _run("ip netns add", switch)
        _run(f"ip -n {switch} link add br0 type bridge")
        _run(f"ip -n {switch} link set br0 up")
        for number, name in enumerate(names):
            host, rate = space(name), rates[name]
            _run("ip netns add", host)
            _run(f"ip -n {host} link add eth0 type veth peer name p{number} netns {switch}")
            _run(f"ip -n {switch} link set p{number} master br0 up")
            _run(f"ip -n {host} addr add {addresses[name]}/24 dev eth0")
            _run(f"ip -n {host} link set eth0 up")
            _run(f"ip -n {host} link set lo up")
            # kB; with 64 tbf would cut each large packet of the kernel into small ones, for several
            # times the processor time
            burst = max(256, rate // 8)
            shape = f"root tbf rate {rate}mbit burst {burst}kb latency 50ms"
            _run(f"tc -n {host} qdisc add dev eth0 {shape}")
            _run(f"tc -n {switch} qdisc add dev p{number} {shape}")
        yield addresses
    finally:
        for each in [*map(space, names), switch]:
            subprocess.run(["ip", "netns", "del", each], capture_output=True)


def space(name: str) -> str:
    """The namespace of a host."""
    return f"{_PREFIX}-{name}"


def inside(name: str) -> list[str]:
    """A command prefix that runs something on a host."""
    return ["ip", "netns", "exec", space(name)]


def chain(
    weights: Path, folder: Path, depth: int, rate: int, *, loss: int = 0, delay_ms: int = 0
) -> float:
    """Seconds from the publish call to a client's verified file through `depth` relays.

    Args:
        rate: of every link, Mbit/s.
        loss: packets that each host drops of those it gets, per mille; a packet may hold 64 KiB.
        delay_ms: each way, between the last relay and the client.
    """
    hosts = ["origin", *(f"relay{n}" for n in range(depth)), "client"]
    make_run(folder / "run")
    with ExitStack() as stack:
        address = stack.enter_context(network(dict.fromkeys(hosts, rate)))
        up = _serve(stack, address, "origin", origin(folder / "run", f"{address['origin']}:{PORT}"))
        for number in range(depth):
            name = f"relay{number}"
            listen = f"{address[name]}:{PORT}"
            up = _serve(stack, address, name, relay([up], folder / name, listen))
        if delay_ms:
            up = _delay(stack, address, hosts[-2], up, delay_ms)
        client = Client([up], folder / "client", inside=inside("client"))
        client.ready()
        if loss:
            for name in hosts:
                _run(" ".join(inside(name)), "nft", LOSS.format(loss=loss))
        client.go()
        called = publish(folder / "run", weights, SHARD)
        return client.result().done - called


def _delay(
    stack: ExitStack, address: Mapping[str, str], name: str, target: str, delay_ms: int
) -> str:
    """Put a proxy before a server, on its host; its address once it answers there."""
    listen = f"{address[name]}:{PORT + 1}"
    words = [sys.executable, str(Path(__file__).with_name("delay.py")), listen, target]
    process = subprocess.Popen([*inside(name), *words, str(delay_ms)])
    stack.callback(process.wait)
    stack.callback(process.kill)
    _wait_for(name, listen)
    return listen


def fan(
    weights: Path, folder: Path, relays: Sequence[int], clients: int, rate: int, rule: str
) -> float:
    """Seconds until the last of `clients` has the version from relays that hold it already."""
    served = [f"relay{n}" for n in range(len(relays))]
    asking = [f"client{n}" for n in range(clients)]
    rates = {
        "origin": 10_000,
        **dict(zip(served, relays, strict=True)),
        **dict.fromkeys(asking, rate),
    }
    make_run(folder / "run")
    publish(folder / "run", weights, SHARD)
    with ExitStack() as stack:
        address = stack.enter_context(network(rates))
        up = _serve(stack, address, "origin", origin(folder / "run", f"{address['origin']}:{PORT}"))
        holding = []
        for name in served:
            listen = f"{address[name]}:{PORT}"
            holding.append(_serve(stack, address, name, relay([up], folder / name, listen)))
        for name in served:
            _until_held(folder / name)
        waiting = [
            Client(holding, folder / name, inside=inside(name), rule=rule) for name in asking
        ]
        for one in waiting:
            one.ready()
        called = time.monotonic()
        for one in waiting:
            one.go()
        return max(one.result().done for one in waiting) - called


def _serve(stack: ExitStack, address: Mapping[str, str], name: str, words: list[str | Path]) -> str:
    """Start a server on a host; its address once it answers there."""
    stack.enter_context(started(words, inside=inside(name)))
    _wait_for(name, f"{address[name]}:{PORT}")
    return f"{address[name]}:{PORT}"


def _wait_for(name: str, listen: str) -> None:
    url = f"http://{listen}/health"
    probe = ["wget", "-q", "-O", "-", "--tries=100", "--retry-connrefused", "--waitretry=1", url]
    subprocess.run([*inside(name), *probe], check=True, capture_output=True)


def _until_held(folder: Path) -> None:
    while not (folder / "policies" / "000000" / "seal.json").exists():
        time.sleep(0.05)


def _run(command: str, *more: str) -> None:
    subprocess.run([*command.split(), *more], check=True, capture_output=True)
