"""`fetch` says at once what is hopeless, and for what it waits where it isn't."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from shardcast_support import QUICK, client, origin, publish

from prime_core.shardcast.asking import ask_all
from prime_core.shardcast.connection import Patience, RelayUnverified
from prime_core.shardcast.download import VersionFailed
from prime_core.shardcast.fetching import fetch_version


@pytest.fixture
def strange(tmp_path: Path) -> Iterator[str]:
    """The URL of a relay whose certificate nobody vouches for."""
    if shutil.which("openssl") is None:
        pytest.skip("not installed: openssl")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", "key", "-out", "cert"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # the end of the test
                while True:
                    one, _ = listening.accept()
                    with one, suppress(OSError):
                        context.wrap_socket(one, server_side=True)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://localhost:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_certificate_that_nobody_vouches_for_is_an_error_at_once(
    tmp_path: Path, strange: str
) -> None:
    one = client([strange], tmp_path / "client")
    for fetch in (lambda: fetch_version(one, 0), lambda: one.fetch(0)):
        with pytest.raises(RelayUnverified, match="can't be verified") as caught:
            fetch()
        assert caught.value.where == strange
        assert "SSL_CERT_FILE" in str(caught.value.fix)


def test_another_relay_still_gives_the_version(
    tmp_path: Path, strange: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as honest:
        one = client([strange, honest], tmp_path / "client")
        assert fetch_version(one, 0).weights.read_bytes() == data
    told = [each for each in caplog.records if "certificate" in each.getMessage()]
    assert [each.levelname for each in told][:1] == ["WARNING"]
    assert strange in told[0].getMessage()


def test_who_asks_for_a_version_that_nobody_has_is_told_what_there_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publish(tmp_path / "run", 0)
    publish(tmp_path / "run", 1)
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client", replace(QUICK, stall_s=0.3))
        with pytest.raises(VersionFailed, match="no relay has had it"):
            fetch_version(one, 7)
        assert "version 7: no relay has it, they have 0 to 1; it's waited for until" in caplog.text
        caplog.clear()
        fetch_version(one, 1)
        assert "no relay has it" not in caplog.text


def test_nobody_waits_for_the_slowest_relay(tmp_path: Path) -> None:
    """A relay that answers nothing; the patience is one that the test would notice."""
    publish(tmp_path / "run", 0)
    data = publish(tmp_path / "run", 1)
    patient = replace(QUICK, patience=Patience(300.0, least_bytes_per_s=1.0))
    with socket.create_server(("127.0.0.1", 0)) as silent, origin(tmp_path / "run") as url:
        relays = [f"http://127.0.0.1:{silent.getsockname()[1]}", url]
        one = client(relays, tmp_path / "client", patient)
        began = threading.active_count()
        assert one.probe() == {}
        assert one.versions() == {0: True, 1: True}
        assert threading.active_count() >= began + 2, "the silent one is still being asked"
        slow, fast = (one.relays[each].bandwidth for each in relays)
        assert slow is not None
        assert fast is not None
        assert slow < fast, "it isn't taken for the best because it was never measured"
        assert fetch_version(one, None).weights.read_bytes() == data


def test_all_are_waited_for_where_nobody_has_answered() -> None:
    asked: list[str] = []
    assert ask_all(["a", "b"], lambda address: bool(asked.append(address))) == []
    assert sorted(asked) == ["a", "b"]
