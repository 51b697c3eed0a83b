"""Disks that really are full: a tmpfs of a few pages, mounted where only one process sees it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from shardcast_support import RUN, SHARD, SHARDS, SIGNER, origin, publish, until

from prime_core.run.tree import free_ports

PAGE = 4096
WHOLE = SHARDS * SHARD // PAGE + SHARDS + 2  # pages: the weights, the lines, header and seal
MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
# A mount of one process is gone with it: the hash of what was fetched is told before.
FETCH = (
    'out=$("$@"); status=$?; [ -z "$out" ] || sha256sum "$out" | cut -c1-64; ls -R "$DISK"; exit '
    "$status"
)


@pytest.fixture(autouse=True)
def _mounts() -> None:
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount anything, even for itself")


def small(pages: int, disk: Path, *words: object) -> list[str]:
    """A command that sees a disk of so many pages at `disk`."""
    disk.mkdir(exist_ok=True)
    mount = ["unshare", "-m", "sh", "-c", MOUNT, "sh", str(pages * PAGE), str(disk)]
    return [*mount, *map(str, words)]


def fetch(url: str, pages: int, disk: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "prime_core", "fetch", "0", "--relays", url, "--dir", disk]
    words += ["--signer", SIGNER.address, "--run-id", RUN]
    inside = small(pages, disk, "sh", "-c", FETCH, "sh", *words)
    environment = {**os.environ, "DISK": str(disk)}
    return subprocess.run(inside, capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.parametrize("pages", [4, WHOLE - 4])
def test_a_client_whose_disk_is_full_says_so(pages: int, tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as url:
        done = fetch(url, pages, tmp_path / "disk")
    assert done.returncode == 2, done.stdout
    assert "No space left on device" in done.stderr
    assert "free disk space" in done.stderr
    assert "Traceback" not in done.stderr
    assert "seal.json" not in done.stdout


def test_a_disk_of_the_files_own_size_is_enough(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as url:
        done = fetch(url, WHOLE + 2, tmp_path / "disk")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == hashlib.sha256(data).hexdigest()


def test_a_relay_on_a_small_disk_holds_the_newest_version(tmp_path: Path) -> None:
    for version in range(3):
        publish(tmp_path / "run", version)
    listen = f"127.0.0.1:{free_ports(1)[0]}"

    def whole() -> list[int]:
        try:
            with urllib.request.urlopen(f"http://{listen}/versions", timeout=5) as answer:
                listed = json.loads(answer.read())["versions"]
        except OSError:
            return []
        return [version for version, _, sealed in listed if sealed]

    with origin(tmp_path / "run") as url:
        words = [sys.executable, "-m", "prime_core", "relay", "--upstream", url, "--dir"]
        words += [str(tmp_path / "disk"), "--signer", SIGNER.address, "--run-id", RUN]
        inside = small(WHOLE + 8, tmp_path / "disk", *words, "--listen", listen)
        with subprocess.Popen(inside, stderr=subprocess.PIPE, text=True) as relay:
            try:
                until(lambda: whole() == [2])
                publish(tmp_path / "run", 3)
                until(lambda: whole() == [3])
            finally:
                relay.terminate()
                _, told = relay.communicate(timeout=60)
    assert relay.returncode == 0, told
    assert "Traceback" not in told
