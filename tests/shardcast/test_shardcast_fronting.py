"""The real nginx and nft before a relay, in network namespaces: what they let through counts."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest
from shardcast_network import (
    BANNED,
    CLIENTS,
    HOST,
    MEMBER,
    SECOND,
    SERVER,
    STRANGER,
    fronted,
    members,
    missing,
    run,
    status,
)
from shardcast_support import RUN, SIGNER, until

from prime_core.api.errors import FormatError
from prime_core.shardcast.fronting import Front
from prime_core.shardcast.members import Members, parse_members, read_members


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


def test_a_banned_address_comes_in_by_no_header_and_proxies_pass_the_firewall(
    network: None, tmp_path: Path
) -> None:
    listed = members((MEMBER, "active"), (BANNED, "banned"))
    with fronted(tmp_path, listed, "--proxy", f"{STRANGER}/32", "--firewall"):
        shard = "/policies/000000/shard-00000.bin"

        def through(*named: str) -> int | None:
            return status(STRANGER, shard, "--header", f"X-Forwarded-For: {', '.join(named)}")

        assert through(MEMBER) == 200
        # A proxy adds whom it saw; what its client wrote before that counts for nothing.
        assert through(MEMBER, BANNED) == 403
        assert through(BANNED, MEMBER) == 200
        assert through(BANNED) == through("") == through("x") == 403
        assert status(BANNED, shard, "--header", f"X-Forwarded-For: {MEMBER}") is None
        for name in ("X-Real-IP", "Forwarded", "CF-Connecting-IP"):
            assert status(STRANGER, shard, "--header", f"{name}: {MEMBER}") == 403


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


def test_nginx_speaks_tls_and_a_client_checks_its_certificate(
    network: None, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("not installed: openssl")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", "/CN=relay", "-addext", f"subjectAltName=IP:{HOST}"]
    done = run(*made, "-keyout", key, "-out", certificate)
    assert done.returncode == 0, done.stderr
    served = ["--certificate", "cert.pem", "--key", "key.pem"]
    listed = members((MEMBER, "active"))
    with fronted(tmp_path, listed, *served, scheme="https"):
        words = [sys.executable, "-m", "prime_core", "fetch", "0", "--relays", f"https://{HOST}:80"]
        words += ["--signer", SIGNER.address, "--run-id", RUN, "--dir", tmp_path / "client"]
        trusting = ["env", f"SSL_CERT_FILE={certificate}"]
        done = run(*trusting, *words, inside=CLIENTS)
        assert done.returncode == 0, done.stderr
        data = (tmp_path / "run/policies/000000/weights.safetensors").read_bytes()
        assert Path(done.stdout.strip()).read_bytes() == data
        # Nobody vouches for this certificate: nothing is asked for over such a connection.
        other = run("timeout", "8", *words[:-1], tmp_path / "other", inside=CLIENTS)
        assert other.returncode == 2, "it says so at once"
        assert "certificate can't be verified" in other.stderr
        assert [*(tmp_path / "other/policies").iterdir()] == []


def test_ufw_holds_the_members_of_the_last_list_in_order(tmp_path: Path) -> None:
    reason = missing("ip", "ufw", "unshare")
    if reason:
        pytest.skip(reason)
    shutil.copytree("/etc/ufw", tmp_path / "etc")
    front = Front(tmp_path, "0.0.0.0:443", "127.0.0.1:8470")

    def added(*listed: tuple[str, str]) -> list[str]:
        """What the real ufw holds after the script, in a file system of its own."""
        front.write(parse_members(members(*listed)))
        inside = 'mount --bind "$1/etc" /etc/ufw && sh -e "$1/ufw.sh" >&2 && ufw show added'
        done = run("unshare", "-m", "-n", "sh", "-c", inside, "sh", tmp_path)
        assert done.returncode == 0, done.stderr
        rules = [line for line in done.stdout.splitlines() if line.startswith("ufw ")]
        return [rule.partition(" to any port 443 proto tcp")[0] for rule in rules]

    everybody = "ufw deny 443/tcp comment 'prime-shardcast-443'"
    assert added(("10.0.0.1", "active"), ("10.1.0.0/16", "banned"), ("fd00::/64", "active")) == [
        "ufw deny from 10.1.0.0/16",
        "ufw allow from 10.0.0.1",
        everybody,
        "ufw allow from fd00::/64",
    ]
    assert added(("10.0.0.2", "active"), ("10.0.0.1", "left")) == [
        "ufw allow from 10.0.0.2",
        everybody,
    ]
    assert added() == [everybody]


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
    assert (tmp_path / "ufw.sh").read_text().splitlines()[-3:] == [
        "ufw deny proto tcp from fd00::/64 to any port 443 comment prime-shardcast-443",
        "ufw allow proto tcp from 10.0.0.1/32 to any port 443 comment prime-shardcast-443",
        "ufw deny proto tcp from any to any port 443 comment prime-shardcast-443",
    ]
