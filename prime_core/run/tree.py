"""The processes of `[shardcast] mode = "tree"` here: an origin, relays, a client a worker.

The supervisor starts them with a run's other roles. They serve on loopback and end with the run.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

from prime_core.run.children import Child
from prime_core.signing import Signer
from prime_core.store.layout import KEYS, LOGS, RUN, SHARDCAST, client_dir

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig


def tree(config: RunConfig) -> list[Child]:
    """Origin, relays and clients of a prepared run; none where workers read the store."""
    settings = config.shardcast
    if settings.mode == "local":
        return []
    run_dir = config.run.dir
    mine = ["--supervisor", str(os.getpid())]
    origin, *relays = [f"127.0.0.1:{port}" for port in free_ports(1 + settings.relays)]
    identity = ["--signer", Signer.load(run_dir / KEYS / "trainer.key").address]
    identity += ["--run-id", str(config.run.id), "--connections", str(settings.connections)]
    budget = [] if settings.disk_gb is None else ["--disk-gb", str(settings.disk_gb)]
    children = [_service(config, "origin", ["origin", str(run_dir / RUN), "--listen", origin])]
    for index, relay in enumerate(relays):
        arguments = ["relay", "--upstream", f"http://{origin}", "--listen", relay]
        arguments += ["--dir", str(run_dir / SHARDCAST / f"relay-{index}"), *identity]
        arguments += ["--keep", str(settings.kept_versions(config.async_.max_lag)), *budget]
        children.append(_service(config, f"relay-{index}", arguments))
    urls = ",".join(f"http://{relay}" for relay in relays)
    for index in range(config.engine.workers):
        node = f"worker-{index}"
        arguments = ["fetch", "--follow", str(run_dir / RUN), "--node", node, "--relays", urls]
        arguments += ["--dir", str(run_dir / client_dir(node)), *identity]
        children.append(_service(config, f"client-{node}", arguments))
    deltas = ["--deltas"] if settings.deltas else []
    for child in children:
        child.arguments = [*child.arguments, *deltas, *mine]
    return children


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at now; a restarted child takes its own again."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _service(config: RunConfig, name: str, arguments: list[str]) -> Child:
    return Child(name, arguments, config.run.dir / LOGS / f"{name}.log", service=True)
