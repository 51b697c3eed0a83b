"""`prime-core origin | relay | fetch` as processes: they serve, are killed, come back, and end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from shardcast_support import RUN, RUN_TOML, SIGNER, publish

from prime_core.run.tree import free_ports

pytestmark = pytest.mark.integration


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "prime_core", *map(str, words)]


@contextmanager
def process(*words: object, url: str, tells: bytes = b"") -> Iterator[subprocess.Popen[bytes]]:
    """A server process, once it answers; asserts that SIGTERM ends it well."""
    with subprocess.Popen(command(*words), stderr=subprocess.PIPE) as running:
        try:
            while running.poll() is None:
                try:
                    httpx.get(f"{url}/health", timeout=5)
                    break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield running
        finally:
            running.send_signal(signal.SIGTERM)
            _, told = running.communicate(timeout=60)
        assert running.returncode in (0, -9), told.decode()
        assert b"Traceback" not in told, told.decode()
        assert tells in told


def fetch(url: str, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    options = ("--relays", url, "--dir", folder, "--signer", SIGNER.address, "--run-id", RUN)
    return subprocess.run(
        command("fetch", *words, *options), capture_output=True, text=True, timeout=120
    )


def test_a_version_passes_origin_relay_and_client_processes(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    publish(run_dir, 0)
    data = publish(run_dir, 1)
    (run_dir / "run.toml").write_text(RUN_TOML.format(dir=run_dir))
    up, down, metrics = (f"127.0.0.1:{port}" for port in free_ports(3))
    taking = ["relay", "--upstream", f"http://{up}", "--dir", tmp_path / "relay", "--listen", down]
    taking += ["--signer", SIGNER.address, "--run-id", RUN, "--metrics", metrics]
    needed = f"--signer {SIGNER.address} --run-id {RUN}".encode()
    with process("origin", run_dir, "--listen", up, url=f"http://{up}", tells=needed):
        with process(*taking, url=f"http://{down}") as relay:
            done = fetch(f"http://{down}", tmp_path / "one", 1)
            assert done.returncode == 0, done.stderr
            held = Path(done.stdout.strip())
            assert held.read_bytes() == data
            text = httpx.get(f"http://{metrics}/metrics").text
            assert re.search(r"prime_shardcast_shard_bytes_sent_total [1-9]", text)
            assert "127.0.0.1" not in text
            relay.kill()
        with process(*taking, url=f"http://{down}"):
            newest = fetch(f"http://{down}", tmp_path / "two")
            assert newest.returncode == 0, newest.stderr
            assert Path(newest.stdout.strip()).parent.name == "000001"


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    done = fetch("ftp://x", tmp_path, 1)
    assert done.returncode == 2
    assert "is no relay's address" in done.stderr
    (port,) = free_ports(1)
    done = fetch(f"http://127.0.0.1:{port}", tmp_path)
    assert done.returncode == 2
    assert "no relay has a whole version" in done.stderr
