"""Two hosts in network namespaces, one of them with the real nginx before a relay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shardcast_support import RUN, SIGNER, publish, until

from prime_core.shardcast.fronting import Front

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
SERVER, CLIENTS = f"pst{os.getpid() % 10000}s", f"pst{os.getpid() % 10000}c"
HOST = "10.93.0.1"
MEMBER, STRANGER, BANNED, SECOND = (f"10.93.0.{n}" for n in (11, 12, 13, 14))


def members(*entries: tuple[str, str]) -> bytes:
    listed = [
        {"address": f"0x{number:040x}", "ip": ip, "status": status}
        for number, (ip, status) in enumerate(entries)
    ]
    return json.dumps({"schema": "prime-core/members/1", "members": listed}).encode()


def missing(*programs: str) -> str | None:
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [name for name in programs if shutil.which(name, path=PATH) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    done = subprocess.run(["ip", "netns", "add", f"{SERVER}try"], capture_output=True)
    subprocess.run(["ip", "netns", "del", f"{SERVER}try"], capture_output=True)
    return "this machine lets nobody make network namespaces" if done.returncode else None


def run(*words: object, inside: str | None = None) -> subprocess.CompletedProcess[str]:
    prefix = ["ip", "netns", "exec", inside] if inside else []
    return subprocess.run(
        [*prefix, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": PATH},
    )


@contextmanager
def two_hosts() -> Iterator[None]:
    """A host with nginx and relay, and another with the addresses of all clients."""
    reason = missing("ip", "nginx", "nft", "wget")
    if reason:
        pytest.skip(reason)
    commands = [
        f"ip netns add {SERVER}",
        f"ip netns add {CLIENTS}",
        f"ip -n {SERVER} link add eth0 type veth peer name eth0 netns {CLIENTS}",
        f"ip -n {SERVER} addr add {HOST}/24 dev eth0",
        *(
            f"ip -n {CLIENTS} addr add {ip}/24 dev eth0"
            for ip in (MEMBER, STRANGER, BANNED, SECOND)
        ),
        *(
            f"ip -n {each} link set {dev} up"
            for each in (SERVER, CLIENTS)
            for dev in ("lo", "eth0")
        ),
    ]
    try:
        for command in commands:
            done = run(*command.split())
            assert done.returncode == 0, done.stderr
        yield
    finally:
        run("ip", "netns", "del", SERVER)
        run("ip", "netns", "del", CLIENTS)


@contextmanager
def fronted(folder: Path, listed: bytes, *options: object, scheme: str = "http") -> Iterator[Front]:
    """A relay that holds version 0, and nginx before it."""
    run_dir = folder / "run"
    publish(run_dir, 0)
    (folder / "relay").mkdir()
    shutil.copytree(run_dir / "policies", folder / "relay" / "policies")
    (folder / "members.json").write_bytes(listed)
    # Relative paths, as the documentation has them.
    words = ["relay", "--upstream", "http://127.0.0.1:9", "--dir", "relay"]
    words += ["--signer", SIGNER.address, "--run-id", RUN]
    words += ["--nginx", "front", "--public", f"{HOST}:80", "--members", "members.json", *options]
    front = Front(folder / "front", f"{HOST}:80", "127.0.0.1:8470")
    inside = ["ip", "netns", "exec", SERVER]
    command = [*inside, sys.executable, "-m", "prime_core", *map(str, words)]
    relay = subprocess.Popen(command, cwd=folder)
    nginx = None
    try:
        until(lambda: relay.poll() is not None or (front.directory / "ufw.sh").exists())
        assert relay.poll() is None
        program = shutil.which("nginx", path=PATH)
        command = [*inside, program, "-e", "stderr", "-c", front.config, "-g", "daemon off;"]
        nginx = subprocess.Popen(command)
        shard = "/policies/000000/shard-00007.bin"
        until(lambda: status(MEMBER, shard, scheme=scheme) == 200)
        yield front
    finally:
        for process in (nginx, relay):
            if process is not None:
                process.terminate()
                process.wait()


def ask(
    source: str, path: str, *fields: str, scheme: str = "http"
) -> subprocess.CompletedProcess[str]:
    fields = ("--no-check-certificate", *fields)
    words = ["wget", "-S", "-O", "/dev/null", "-T", "1", "-t", "1", "--bind-address", source]
    return run(*words, *fields, f"{scheme}://{HOST}:80{path}", inside=CLIENTS)


def status(source: str, path: str, *fields: str, scheme: str = "http") -> int | None:
    """What nginx answers a client of this address; None where no connection comes about."""
    for line in ask(source, path, *fields, scheme=scheme).stderr.splitlines():
        if line.strip().startswith("HTTP/1.1 "):
            return int(line.split()[1])
    return None
