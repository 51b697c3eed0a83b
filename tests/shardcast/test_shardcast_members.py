"""What follows `members.json`: stand-ins for nginx and nft tell what they were asked to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shardcast_network import members
from shardcast_support import RUN, SIGNER, until

from prime_core.api.errors import FormatError, PrimeError
from prime_core.shardcast import fronting
from prime_core.shardcast.fronting import Front
from prime_core.shardcast.members import Members, parse_members

ONE, TWO = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Front:
    """A front whose nginx and nft fail where a file of their name lies in `refuses`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "refuses").mkdir()
    for name in ("nginx", "nft"):
        script = f'#!/bin/sh\necho "$@" >> {tmp_path}/{name}.asked\n'
        (programs / name).write_text(script + f"test ! -e {tmp_path}/refuses/{name}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(fronting, "LOOK_S", 0.02)
    monkeypatch.setattr(fronting, "RETRY_S", 0.02)
    monkeypatch.chdir(tmp_path)
    made = Front(Path("front"), "0.0.0.0:443", "127.0.0.1:8470", enforced=True)
    made.write(Members())
    return made


@contextmanager
def following(front: Front, listed: bytes) -> Iterator[Path]:
    """`follow` in a thread, which must outlive whatever a test does."""
    path, stop = front.directory.parent / "members.json", threading.Event()
    path.write_bytes(listed)
    thread = threading.Thread(target=front.follow, args=(path, stop))
    thread.start()
    try:
        yield path
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join()


@contextmanager
def running(front: Front, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of that name whose pid stands where nginx writes its own."""
    program = front.directory.parent / name
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "1000"]) as process:
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == name)
        (front.directory / "nginx.pid").write_text(f"{process.pid}\n")
        try:
            yield process
        finally:
            process.kill()


def change(path: Path, listed: bytes) -> None:
    path.with_suffix(".new").write_bytes(listed)
    path.with_suffix(".new").rename(path)


def allowed(front: Front) -> list[str]:
    return [line.split("/")[0] for line in (front.directory / "allowed.conf").read_text().split()]


def test_a_members_file_that_changed_before_it_was_followed_counts(front: Front) -> None:
    with following(front, members((ONE, "active"))):
        until(lambda: ONE in allowed(front))
        assert TWO not in allowed(front)


def test_nginx_is_asked_by_an_absolute_path_and_told_once_it_takes_it(front: Front) -> None:
    refuses = front.directory.parent / "refuses/nginx"
    refuses.write_text("")
    with running(front, "nginx") as nginx, following(front, members((ONE, "active"))):
        asked = front.directory.parent / "nginx.asked"
        until(lambda: asked.exists() and len(asked.read_text().splitlines()) > 2)
        assert nginx.poll() is None
        refuses.unlink()
        assert nginx.wait(60) == -signal.SIGHUP
        words = asked.read_text().split()
        assert Path(words[-1]) == front.directory.resolve() / "nginx.conf"
        assert Path(words[-1]).is_absolute()


def test_a_firewall_that_refuses_keeps_nobody_in_nginx(front: Front) -> None:
    (front.directory.parent / "refuses/nft").write_text("")
    with running(front, "nginx") as nginx, following(front, members((ONE, "active"))):
        assert nginx.wait(60) == -signal.SIGHUP


def test_a_pid_of_nobody_or_of_another_program_ends_nothing(front: Front) -> None:
    with running(front, "other") as other, following(front, members((ONE, "active"))) as path:
        until(lambda: ONE in allowed(front))
        change(path, members((TWO, "active")))
        until(lambda: TWO in allowed(front))
        assert front.reload() is False
        assert other.poll() is None
        other.kill()
        other.wait()
        change(path, members((ONE, "active")))
        until(lambda: ONE in allowed(front))


def test_whatever_breaks_is_tried_again(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    broken: list[int] = []
    write = Front.write

    def breaks(front: Front, listed: Members) -> None:
        broken.append(1)
        if len(broken) < 3:
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        write(front, listed)

    monkeypatch.setattr(Front, "write", breaks)
    with following(front, members((ONE, "active"))):
        until(lambda: ONE in allowed(front))
    assert len(broken) >= 3, "twice it broke, and was tried again"


def test_an_address_with_a_zone_is_refused() -> None:
    for zone in ("eth0", ";touch PWNED;#", "x 1; } } evil {", "\ud800"):
        for ip in (f"fe80::1%{zone}", f"2001:db8::%{zone}/64"):
            document = json.loads(members((ONE, "active")))
            document["members"][0]["ip"] = ip
            with pytest.raises(FormatError, match=r"members\[0\] has no ip"):
                parse_members(json.dumps(document).encode())


def test_the_firewall_lets_configured_proxies_in(tmp_path: Path) -> None:
    proxies = ("192.0.2.0/24", "fd00::1")
    front = Front(tmp_path, "0.0.0.0:443", "127.0.0.1:8470", proxies=proxies)
    front.check()
    front.write(parse_members(members((ONE, "active"))))
    rules = front.firewall.read_text()
    shown = (
        "set proxies4 { type ipv4_addr; flags interval; auto-merge; elements = { 192.0.2.0/24 };"
    )
    assert shown in rules
    assert rules.index("ip saddr @proxies4 accept") < rules.index("@flood4 {")
    assert rules.index("ip6 saddr @denied6 drop") < rules.index("ip6 saddr @proxies6 accept")
    assert (tmp_path / "ufw.sh").read_text().splitlines()[-4:-1] == [
        f"ufw allow proto tcp from {each} to any port 443 comment prime-shardcast-443"
        for each in ("192.0.2.0/24", "fd00::1/128", f"{ONE}/32")
    ]


def test_a_front_that_cant_hold_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("")
    there, absent = tmp_path / "cert.pem", tmp_path / "key.pem"
    for options, told in (
        ({"certificate": there}, "--key"),
        ({"key": there}, "--certificate"),
        ({"certificate": there, "key": absent}, "key.pem"),
        ({"proxies": ("192.0.2.0/24; evil",)}, "--proxy"),
        ({"relay": "0.0.0.0:8470"}, "--listen 127.0.0.1:8470"),
        ({"relay": "192.0.2.1:8470"}, "--listen 127.0.0.1:8470"),
        ({"listen": "443"}, "HOST:PORT"),
    ):
        arguments = {"listen": "0.0.0.0:443", "relay": "127.0.0.1:8470", **options}
        with pytest.raises(PrimeError) as caught:
            Front(tmp_path / "front", **arguments).check()  # type: ignore[arg-type]
        assert told in str(caught.value)
    for relay in ("127.0.0.1:8470", "localhost:8470", "[::1]:8470"):
        Front(tmp_path / "front", "0.0.0.0:443", relay).check()
    words = ["relay", "--upstream", "http://127.0.0.1:9", "--dir", tmp_path / "relay", "--signer"]
    words += [SIGNER.address, "--run-id", RUN, "--nginx", tmp_path / "front"]
    words += ["--listen", "0.0.0.0:0", "--certificate", there]
    done = subprocess.run(
        [sys.executable, "-m", "prime_core", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "fix:" in done.stderr
    assert not (tmp_path / "front").exists()
