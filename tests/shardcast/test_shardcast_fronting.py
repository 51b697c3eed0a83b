"""The real nginx and nft before a relay, in network namespaces: what they let through counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shardcast_support import SIGNER, publish, until

from prime_core.api.errors import FormatError
from prime_core.shardcast.fronting import Front
from prime_core.shardcast.members import Members, parse_members, read_members

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


@pytest.fixture
def network() -> Iterator[None]:
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
def fronted(folder: Path, listed: bytes, *options: object) -> Iterator[Front]:
    """A relay that holds version 0, and nginx before it."""
    run_dir = folder / "run"
    publish(run_dir, 0)
    (folder / "relay").mkdir()
    shutil.copytree(run_dir / "policies", folder / "relay" / "policies")
    (folder / "members.json").write_bytes(listed)
    words = ["relay", "--upstream", "http://127.0.0.1:9", "--dir", folder / "relay"]
    words += ["--signer", SIGNER.address, "--nginx", folder / "front", "--public", f"{HOST}:80"]
    words += ["--members", folder / "members.json", *options]
    front = Front(folder / "front", f"{HOST}:80", "127.0.0.1:8470")
    inside = ["ip", "netns", "exec", SERVER]
    relay = subprocess.Popen([*inside, sys.executable, "-m", "prime_core", *map(str, words)])
    nginx = None
    try:
        until(lambda: relay.poll() is not None or (front.directory / "ufw.sh").exists())
        assert relay.poll() is None
        program = shutil.which("nginx", path=PATH)
        command = [*inside, program, "-e", "stderr", "-c", front.config, "-g", "daemon off;"]
        nginx = subprocess.Popen(command)
        until(lambda: status(MEMBER, "/policies/000000/shard-00007.bin") == 200)
        yield front
    finally:
        for process in (nginx, relay):
            if process is not None:
                process.terminate()
                process.wait()


def ask(source: str, path: str, *fields: str) -> subprocess.CompletedProcess[str]:
    words = ["wget", "-S", "-O", "/dev/null", "-T", "1", "-t", "1", "--bind-address", source]
    return run(*words, *fields, f"http://{HOST}{path}", inside=CLIENTS)


def status(source: str, path: str, *fields: str) -> int | None:
    """What nginx answers a client of this address; None where no connection comes about."""
    for line in ask(source, path, *fields).stderr.splitlines():
        if line.strip().startswith("HTTP/1.1 "):
            return int(line.split()[1])
    return None


def test_nginx_lets_members_through_and_follows_their_list(network: None, tmp_path: Path) -> None:
    first = members((MEMBER, "active"), (SECOND, "left"), (BANNED, "banned"))
    with fronted(tmp_path, first) as front:
        shard = "/policies/000000/shard-00000.bin"
        assert status(MEMBER, shard) == 200
        assert status(MEMBER, "/policies/000000/manifest") == 200
        assert [status(each, shard) for each in (STRANGER, SECOND, BANNED)] == [403] * 3
        assert [status(MEMBER, path) for path in ("/metrics", "/keys/trainer.key", "/")] == [
            404
        ] * 3
        # Nobody is a proxy here, so that a header makes nobody a member.
        assert status(STRANGER, shard, "--header", f"X-Forwarded-For: {MEMBER}") == 403
        slow = ["wget", "-q", "-O", "-", "--limit-rate", "100k", "--bind-address"]
        url = f"http://{HOST}/probe.bin"
        done: list[int] = []
        running = threading.Thread(
            target=lambda: done.append(len(run(*slow, MEMBER, url, inside=CLIENTS).stdout))
        )
        running.start()
        new = tmp_path / "members.new"
        new.write_bytes(members((SECOND, "active"), (MEMBER, "left")))
        new.rename(tmp_path / "members.json")
        until(lambda: status(SECOND, shard) == 200)
        until(lambda: status(MEMBER, shard) == 403)
        running.join()
        assert done == [256 * 1024], "a reload ends no transfer"
        (tmp_path / "members.json").write_text("{")  # changes nothing
        time.sleep(2)
        assert status(SECOND, shard) == 200
        assert front.config.exists()


def test_a_flood_from_one_address_is_answered_429_and_hurts_no_other(
    network: None, tmp_path: Path
) -> None:
    both = members((MEMBER, "active"), (SECOND, "active"))
    with fronted(tmp_path, both, "--rate", "1"):
        urls = tmp_path / "urls"
        urls.write_text(f"http://{HOST}/health\n" * 50)
        words = ["wget", "-S", "-O", "/dev/null", "--bind-address", MEMBER, "-i", urls]
        told = run(*words, inside=CLIENTS).stderr
        assert "HTTP/1.1 429" in told
        assert status(SECOND, "/health") == 200


def test_a_configured_proxy_is_believed_and_limits_count_its_clients(
    network: None, tmp_path: Path
) -> None:
    with fronted(tmp_path, members((MEMBER, "active")), "--proxy", f"{STRANGER}/32"):
        shard, named = "/policies/000000/shard-00000.bin", "X-Forwarded-For: "
        assert status(STRANGER, shard, "--header", named + MEMBER) == 200
        assert status(STRANGER, shard, "--header", named + BANNED) == 403
        assert status(BANNED, shard, "--header", named + MEMBER) == 403


def test_the_firewall_lets_members_through_and_is_replaced_at_once(
    network: None, tmp_path: Path
) -> None:
    first = members((MEMBER, "active"), (BANNED, "banned"))
    with fronted(tmp_path, first, "--firewall"):
        assert status(MEMBER, "/health") is not None
        assert status(STRANGER, "/health") is None
        assert status(BANNED, "/health") is None
        new = tmp_path / "members.new"
        new.write_bytes(members((SECOND, "active")))
        new.rename(tmp_path / "members.json")
        until(lambda: status(SECOND, "/health") == 200)
        assert status(MEMBER, "/health") is None
        assert "prime_shardcast" in run("nft", "list", "tables", inside=SERVER).stdout


def test_members_are_read_strictly(tmp_path: Path) -> None:
    found = parse_members(
        members(("10.0.0.1", "active"), ("10.0.0.0/24", "banned"), ("::1", "left"))
    )
    assert [str(each) for each in found.networks("active")] == ["10.0.0.1/32"]
    both = parse_members(members(("10.0.0.1", "active"), ("10.0.0.1", "banned")))
    assert both.networks("active") == []
    good = json.loads(members(("10.0.0.1", "active")))
    for change in (
        {"ip": "0.0.0.0/0"},
        {"ip": "10.0.0.1; return 200"},
        {"ip": 5},
        {"status": "friend"},
        {"status": []},
        {"address": "0xABC"},
        {"more": 1},
    ):
        entry = {**good["members"][0], **change}
        with pytest.raises(FormatError, match=r"members\[0\]"):
            parse_members(json.dumps({**good, "members": [entry]}).encode())
    for document in (b"", b"[]", b'{"schema": "prime-core/members/2", "members": []}'):
        with pytest.raises(FormatError):
            parse_members(document)
    path = tmp_path / "members.json"
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(FormatError, match=r"members\.json"):
        read_members(path)


def test_the_files_hold_nothing_that_a_member_wrote(tmp_path: Path) -> None:
    front = Front(tmp_path, "0.0.0.0:443", "127.0.0.1:8470", Path("/c.pem"), Path("/k.pem"))
    front.write(Members())
    assert (tmp_path / "allowed.conf").read_text() == ""
    text = front.config.read_text()
    assert "listen 0.0.0.0:443 ssl;" in text
    assert "set_real_ip_from" not in text
    front.write(parse_members(members(("10.0.0.1", "active"), ("fd00::/64", "banned"))))
    assert (tmp_path / "allowed.conf").read_text() == "10.0.0.1/32 1;\n"
    assert (
        "set denied6 { type ipv6_addr; flags interval; auto-merge; elements = { fd00::/64 }; }"
        in (front.firewall.read_text())
    )
    assert (tmp_path / "ufw.sh").read_text().splitlines()[1:] == [
        "ufw deny proto tcp from fd00::/64 to any port 443",
        "ufw allow proto tcp from 10.0.0.1/32 to any port 443",
        "ufw deny proto tcp from any to any port 443",
    ]
