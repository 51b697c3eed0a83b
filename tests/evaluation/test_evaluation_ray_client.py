"""Work on somebody else's cluster, through Ray's client server: `--on ray://HOST:PORT`.

The cluster is a real one, started with `ray start --head` on the loopback address, as an
administrator would, and ended by the process ids that this test has seen.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ENV = ["arithmetic", "--with", "digits=1", "--with", "kind=addition"]
FILES = ("report.json", "report.html", "samples.parquet", "tasks.parquet")
START_S = 180.0  # until the client server answers, on a busy machine


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def variables() -> dict[str, str]:
    """What cluster and client share."""
    return {
        **os.environ,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "300",  # a busy machine starts slowly
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


def wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the port answers, or the process that should open it has ended."""
    for _ in range(int(START_S / 0.2)):
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        with closing(socket.socket()) as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"nothing listens on {port}: {log.read_text(errors='replace')[-3000:]}")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    started = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in started:
        if child.is_running():
            child.kill()
    psutil.wait_procs(started, timeout=20)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """(address, variables of a client)."""
    pytest.importorskip("ray.util.client.server.server")
    given, port, log = variables(), free_port(), tmp_path / "ray.log"
    # The paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short:
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
            "--node-ip-address", "127.0.0.1", "--port", str(free_port()),
            "--ray-client-server-port", str(port), "--num-cpus", "2",
            "--include-dashboard", "false", "--object-store-memory", str(80 << 20),
            "--temp-dir", short, "--disable-usage-stats",
        ]  # fmt: skip
        with log.open("wb") as file:
            process = subprocess.Popen(command, env=given, stdout=file, stderr=file)
        try:
            wait_until_open(port, process, log)
            yield f"ray://127.0.0.1:{port}", given
        finally:
            end(process)
            for path in sorted(Path(short).glob("session_2*/logs/ray_client_server*.err")):
                print(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}")


def score(
    out: Path, file: Path, given: dict[str, str], *place: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "prime_core", "score", *ENV, "--completions", str(file)]
    return subprocess.run(
        [*command, "--out", str(out), *place], env=given, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_cluster_by_its_address_finds_what_one_machine_finds(
    cluster: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, given = cluster
    file = tmp_path / "c.jsonl"
    file.write_text(
        "".join(
            json.dumps({"index": n % 25, "completion": str(n % 11), "token_count": n}) + "\n"
            for n in range(70)
        )
    )
    there = score(tmp_path / "there", file, given, "--on", address, "--workers", "2")
    assert there.returncode == 0, there.stderr[-3000:]
    here = score(tmp_path / "here", file, given)
    assert here.returncode == 0, here.stderr[-3000:]
    for name in FILES:
        one, other = tmp_path / "there" / name, tmp_path / "here" / name
        assert one.read_bytes() == other.read_bytes(), name
    stranger = {**given, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    refused = score(tmp_path / "refused", file, stranger, "--on", address)
    assert refused.returncode == 2
    assert "no Ray cluster there" in refused.stderr
    assert "RAY_AUTH_TOKEN" in refused.stderr
