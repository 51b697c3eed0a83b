"""Weights from the publish call to a verified file: our relays, the public ones, plain nginx.

Run it with `python benchmarks/shardcast.py [--mib 1024] [--parts machine,links] [--json]`. The part
`links` shapes links between network namespaces and needs root; the public package goes into a
virtual environment that the benchmark makes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from broadcasting import links, peers
from broadcasting.tree import (
    Client,
    free_port,
    make_run,
    make_weights,
    origin,
    publish,
    relay,
    started,
    wait_for,
    warm_up,
)

SHARD = 16 * 2**20
RELAYS = (100, 150, 200)  # Mbit/s
Row = tuple[str, str]


def through_relay(weights: Path, folder: Path) -> dict[str, float]:
    """One transfer origin, relay, client on this machine."""
    make_run(folder / "run")
    up, down = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        stack.enter_context(started(origin(folder / "run", up)))
        wait_for(up)  # a relay that finds nobody there asks again a second later
        stack.enter_context(started(relay([up], folder / "relay", down)))
        wait_for(down)
        client = Client([down], folder / "client")
        client.ready()
        client.go()
        called = publish(folder / "run", weights, SHARD)
        found = client.result()
    held = folder / "client" / "policies" / "000000"
    blocks = sum(file.stat().st_blocks for file in held.iterdir())
    return {
        "seconds": found.done - called,
        "first_shard_s": found.first_shard - called,
        "client_mb": found.max_rss_mb,
        "client_cpu_s": found.cpu_s,
        "disk_times": blocks * 512 / weights.stat().st_size,
    }


def cpu_s() -> float:
    """CPU seconds of this process and of all that it has waited for: load moves them less."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in each)


def say(text: str) -> None:
    """Progress, beside the result."""
    print(f"load {os.getloadavg()[0]:.1f}: {text}", file=sys.stderr, flush=True)


def machine(mib: int, rounds: int, scratch: Path, venv: Path) -> dict[str, float]:
    """Ours, nginx and the public package on one machine, taking turns."""
    weights = scratch / "w" / "weights.safetensors"
    weights.parent.mkdir()
    make_weights(weights, mib * 2**20)
    (weights.parent / "small.txt").write_text("small")
    ours: list[dict[str, float]] = []
    plain: list[float] = []
    public: list[float] = []
    found: dict[str, float] = {}
    python = peers.make_venv(venv)
    for number in range(rounds):
        folder = scratch / f"round-{number}"
        warm_up(scratch, 3 * weights.stat().st_size)
        before = cpu_s()
        ours.append(through_relay(weights, folder / "ours"))
        ours[-1]["cpu_s"] = cpu_s() - before
        say(f"ours {ours[-1]['seconds']:.2f} s")
        shutil.rmtree(folder)
        before = cpu_s()
        if (seconds := peers.nginx(weights, folder / "nginx")) is not None:
            plain.append(seconds)
            found["nginx_cpu_s"] = cpu_s() - before
            say(f"nginx {seconds:.2f} s")
            shutil.rmtree(folder)
        if python is not None:
            warm_up(scratch, 3 * weights.stat().st_size)
            before = cpu_s()
            public.append(peers.public(python, weights, folder / "public"))
            found["public_cpu_s"] = cpu_s() - before
            say(f"public {public[-1]:.2f} s")
            shutil.rmtree(folder)
    weights.unlink()
    found |= {name: median(one[name] for one in ours) for name in ours[0]}
    if plain:
        found["nginx_s"] = median(plain)
        found["times_nginx"] = median(
            one["seconds"] / other for one, other in zip(ours, plain, strict=True)
        )
    if public:
        found["public_s"] = median(public)
        found["faster_than_public"] = median(
            other / one["seconds"] for one, other in zip(ours, public, strict=True)
        )
    return found


def shaped(scratch: Path, mib: int, mbit: int) -> dict[str, float]:
    """Depth, one fast link, and many clients at few relays, over links of known rates."""
    weights = scratch / "links.safetensors"
    make_weights(weights, mib * 2**20)
    bits = weights.stat().st_size * 8
    found: dict[str, float] = {}
    for depth in (1, 3):
        found[f"depth_{depth}_s"] = links.chain(weights, scratch / f"depth{depth}", depth, mbit)
        say(f"depth {depth} {found[f'depth_{depth}_s']:.2f} s")
    found["depth_3_times_1"] = found["depth_3_s"] / found["depth_1_s"]
    found["loss_1_percent_s"] = links.chain(weights, scratch / "loss", 1, mbit, loss=10)
    found["delay_50_ms_s"] = links.chain(weights, scratch / "delay", 1, mbit, delay_ms=50)
    for name in ("loss_1_percent", "delay_50_ms"):
        say(f"{name} {found[f'{name}_s']:.2f} s")
    seconds = links.fan(weights, scratch / "fast", (1000,), 1, 1000, "sampled")
    found["one_client_mbit_s"] = bits / seconds / 1e6
    few = scratch / "few.safetensors"
    make_weights(few, max(32, mib // 4) * 2**20)
    bits = few.stat().st_size * 8
    for clients in (8, 1):
        bound = clients * bits / (sum(RELAYS) * 1e6)
        for rule in ("sampled", "greedy", "uniform"):
            folder = scratch / f"fan-{clients}-{rule}"
            seconds = links.fan(few, folder, RELAYS, clients, 1000, rule)
            found[f"clients_{clients}_{rule}_times_bound"] = seconds / bound
            say(f"{clients} clients, {rule}: {seconds:.2f} s, bound {bound:.2f} s")
            shutil.rmtree(folder)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--link-mib", type=int, default=256)
    parser.add_argument("--link-mbit", type=int, default=500, help="of every link of a chain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="machine,links")
    parser.add_argument("--venv", type=Path, default=Path("runs/public-shardcast"))
    parser.add_argument("--scratch", type=Path, default=None, help="a directory with room")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    # In memory where it fits: a disk would be what is measured.
    shared = Path("/dev/shm")
    room = shutil.disk_usage(shared).free if shared.is_dir() else 0
    place = options.scratch or (shared if room > 8 * options.mib * 2**20 else None)
    found: dict[str, float] = {"cores": float(os.cpu_count() or 0), "load": os.getloadavg()[0]}
    with TemporaryDirectory(dir=place) as scratch:
        if "machine" in options.parts:
            found |= machine(options.mib, options.rounds, Path(scratch), options.venv)
        if "links" in options.parts and links.possible():
            found |= shaped(Path(scratch), options.link_mib, options.link_mbit)
    found["load_after"] = os.getloadavg()[0]
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:36} {value:10.2f}")


if __name__ == "__main__":
    main()
