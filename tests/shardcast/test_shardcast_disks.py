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
from shardcast_support import RUN, SHARD, SHARDS, SIGNER, client, origin, publish, until

from prime_core.api.errors import StoreError
from prime_core.run.tree import free_ports
from prime_core.shardcast.incoming import PART, DiskFull, Incoming
from prime_core.store import layout

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


@pytest.mark.parametrize("message", [0, 3, SHARDS + 1])
def test_a_message_that_a_full_disk_refused_is_written_at_the_next_try(
    message: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = publish(tmp_path / "run", 0)
    write = Incoming._write_message

    def fail(entry: Incoming, index: int) -> None:
        if index >= message:
            raise DiskFull("No space left on device")
        write(entry, index)

    monkeypatch.setattr(Incoming, "_write_message", fail)
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client")
        with pytest.raises(StoreError, match="No space left"):
            one.fetch(0)
        monkeypatch.undo()
        assert one.fetch(0).weights.read_bytes() == data
        if message > SHARDS:  # as a process does that was killed there
            (tmp_path / "client" / layout.policy_seal_path(0)).unlink()
        again = client([url], tmp_path / "client")
        again.shelf.recover()
        assert again.fetch(0).weights.read_bytes() == data
        assert again.counters["shards_received_total"] == 0


def test_links_in_a_relays_directory_are_neither_followed_nor_written_through(
    tmp_path: Path,
) -> None:
    data = publish(tmp_path / "run", 0)
    held, mine = tmp_path / "client/policies", tmp_path / "mine"
    (held / "000000").mkdir(parents=True)
    (mine / "kept").mkdir(parents=True)
    (mine / "file").write_text("mine")
    header = (tmp_path / "run" / layout.policy_header_path(0)).read_bytes()
    (held / "000000/header.json").write_bytes(header)
    (held / "000000" / PART).symlink_to(mine / "file")
    (held / "000001").symlink_to(mine)
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client")
        with pytest.raises(StoreError, match="000001"):
            one.shelf.recover()
        (held / "000001").unlink()
        one.shelf.recover()
        assert one.shelf.listing() == []
        assert one.fetch(0).weights.read_bytes() == data
    assert (mine / "file").read_text() == "mine"
    assert (mine / "kept").is_dir()


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
