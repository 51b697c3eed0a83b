"""What a server takes from strangers: nothing but short requests for what it holds."""

from __future__ import annotations

import json
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardcast_support import SHARD, client, origin, publish, raw, relay, serving, until

from prime_core.shardcast.connection import Connection, RelayLacks
from prime_core.shardcast.counting import Counters
from prime_core.shardcast.library import Span, StoreLibrary
from prime_core.shardcast.requests import BadRequest, parse_request
from prime_core.shardcast.server import Limits, Server
from prime_core.store.objects import ObjectStore


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bytes]]:
    folder = tmp_path_factory.mktemp("origin") / "run"
    data = publish(folder, 0)
    (folder / "secret").write_text("secret")
    with origin(folder) as url:
        yield url, data


def ask(url: str, target: str, *fields: str, method: str = "GET") -> tuple[int, str, bytes]:
    lines = [f"{method} {target} HTTP/1.1", "Host: x", "Connection: close", *fields]
    answer = raw(url, "\r\n".join([*lines, "", ""]).encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


def test_it_lists_and_gives_what_it_holds(served: tuple[str, bytes]) -> None:
    url, data = served
    assert json.loads(ask(url, "/versions")[2]) == {"versions": [[0, 10, True]]}
    assert ask(url, "/policies/000000/shard-00001.bin")[2] == data[SHARD : 2 * SHARD]
    messages = ask(url, "/policies/000000/manifest?from=8")[2].splitlines()
    assert [json.loads(message)["schema"] for message in messages] == [
        "prime-core/policy-shard/2",
        "prime-core/policy-seal/2",
    ]
    assert ask(url, "/health")[2] == b"ok\n"
    assert len(ask(url, "/probe.bin")[2]) == 256 * 1024


def test_ranges_are_parts_of_one_shard(served: tuple[str, bytes]) -> None:
    url, data = served
    shard, path = data[:SHARD], "/policies/000000/shard-00000.bin"
    for wanted, part in (("10-19", shard[10:20]), ("4000-", shard[4000:]), ("0-99999", shard)):
        status, head, body = ask(url, path, f"Range: bytes={wanted}")
        assert (status, body) == (206, part)
        assert f"/{SHARD}" in head
    for wanted in ("5-2", "4096-", "-5", "0-1,3-4", "x", "9" * 30 + "-"):
        assert ask(url, path, f"Range: bytes={wanted}")[0] == 416
    status, head, body = ask(url, path, method="HEAD")
    assert (status, body) == (200, b"")
    assert f"Content-Length: {SHARD}" in head


@pytest.mark.parametrize(
    "target",
    [
        "/../secret",
        "/policies/../secret",
        "/policies/000000/../../secret",
        "/policies/%2e%2e/secret",
        "//etc/passwd",
        "/policies/000000/weights.safetensors",
        "/policies/000000/shard-00000.bin/../header.json",
        "/policies/000000/shard-99999.bin",
        "/policies/999999/manifest",
        "/keys/trainer.key",
        "/metrics",
        "/policies/000000/",
        "/",
    ],
)
def test_nothing_else_can_be_named(served: tuple[str, bytes], target: str) -> None:
    status, _, body = ask(served[0], target)
    assert (status, body) == (404, b"")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /versions HTTP/1.1\r\n\r\n", 405),
        (b"GET /versions HTTP/2.0\r\n\r\n", 400),
        (b"GET versions HTTP/1.1\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\n\r\n", 400),
        (b"GET /v HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /v HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /v HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET /v HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"GET /versions?wait=x HTTP/1.1\r\n\r\n", 400),
        (b"GET /v HTTP/1.1\r\n" + b"A: b\r\n" * 70 + b"\r\n", 431),
        (b"GET /v HTTP/1.1\r\nA: " + b"b" * 9000 + b"\r\n\r\n", 431),
        (b"GET /" + b"v" * 2000 + b" HTTP/1.1\r\n\r\n", 400),
        (b"\x00\xff\r\n\r\n", 400),
    ],
)
def test_other_requests_end_the_connection(
    served: tuple[str, bytes], request_: bytes, status: int
) -> None:
    assert raw(served[0], request_).split()[1] == str(status).encode()


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_head_is_a_request_or_a_status(data: bytes) -> None:
    for head in (data + b"\r\n\r\n", b"GET /versions HTTP/1.1\r\n" + data + b"\r\n\r\n"):
        with suppress(BadRequest):
            assert parse_request(head).path.startswith("/")


def test_a_thousand_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"only {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    try:
        with serving(library, limits=Limits(connections=300)) as url, ExitStack() as stack:
            port = int(url.rpartition(":")[2])
            for _ in range(1000):
                idle = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
                idle.sendall(b"GET /versi")
            assert client([url], tmp_path / "client").fetch(0).weights.read_bytes() == data
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_never_read_give_way_to_others(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    servers: list[Server] = []
    limits = Limits(connections=20)
    with serving(library, limits=limits, ready=servers.append) as url, ExitStack() as stack:
        port = int(url.rpartition(":")[2])
        for _ in range(60):
            greedy = socket.socket()
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stack.enter_context(greedy)
            greedy.bind(("127.0.0.9", 0))
            greedy.connect(("127.0.0.1", port))
            with suppress(ConnectionError):  # probes are never read, so it's never done with them
                greedy.sendall(b"GET /probe.bin HTTP/1.1\r\n\r\n" * 40)
        until(lambda: len(servers[0]._crowd) <= 20)
        assert client([url], tmp_path / "client").fetch(0).weights.read_bytes() == data


def test_a_connection_that_asks_nothing_is_closed(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    with serving(library, limits=Limits(idle_s=0.2)) as url:
        assert raw(url, b"GET /versions HT") == b""


def test_a_flood_from_one_address_is_answered_429_and_hurts_no_other(tmp_path: Path) -> None:
    data = publish(tmp_path / "run", 0)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    counters = Counters()
    limits = Limits(requests_per_s=20)
    with serving(library, limits=limits, counters=counters) as url:
        port = int(url.rpartition(":")[2])
        for _ in range(200):
            with socket.create_connection(
                ("127.0.0.1", port), 30, source_address=("127.0.0.9", 0)
            ) as flood:
                flood.sendall(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
                flood.recv(1000)
        assert counters['requests_total{status="429"}'] > 0
        one = client([url], tmp_path / "client")
        assert one.fetch(0).weights.read_bytes() == data


def test_a_file_that_gets_its_final_name_meanwhile_is_still_served(tmp_path: Path) -> None:
    """A relay renames a version's file when it's whole; clients took the 410 for its end."""
    data = publish(tmp_path / "run", 0)

    class Renamed(StoreLibrary):
        asked = 0

        def span(self, version: int, index: int) -> Span | None:
            self.asked += 1
            found = super().span(version, index)
            assert found is not None
            return replace(found, path=found.path.with_name("old")) if self.asked % 2 else found

    library = Renamed(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    with serving(library) as url:
        assert ask(url, "/policies/000000/shard-00001.bin")[2] == data[SHARD : 2 * SHARD]


def test_no_answer_names_anybody(tmp_path: Path) -> None:
    """Nodes don't learn each other's addresses, nor the origin's (paper, 2.2.3)."""
    publish(tmp_path / "run", 0)
    with origin(tmp_path / "run") as up, relay([up], tmp_path / "relay") as (url, shelf):
        until(lambda: shelf.whole() == [0])
        client([url], tmp_path / "client").fetch(0)
        targets = ("/versions", "/policies/000000/manifest", "/health", "/nothing", "/metrics")
        for target in targets:
            _, head, body = ask(url, target)
            told = (head.encode() + body).lower()
            assert b"127.0.0" not in told
            spoken = re.sub(rb"[0-9a-f]{40,}", b"", told)  # digits of a hash are no port
            assert up.rpartition(":")[2].encode() not in spoken
            assert [line.split(":")[0] for line in head.splitlines()[1:]] == [
                "Content-Length",
                *(["Connection"] if "Connection" in head else []),
            ]


def test_who_hangs_up_between_requests_breaks_nothing(tmp_path: Path) -> None:
    publish(tmp_path / "run", 0)
    library = StoreLibrary(ObjectStore(str(tmp_path / "run")))
    library.refresh()
    counters, servers = Counters(), list[Server]()
    with serving(library, counters=counters, ready=servers.append) as url:
        client([url], tmp_path / "client").fetch(0)
        until(lambda: len(servers[0]._crowd) == 0)
    assert counters["connections_broken_total"] == 0


def test_a_relay_that_lacks_a_version_says_so(served: tuple[str, bytes]) -> None:
    with Connection(served[0]) as connection, pytest.raises(RelayLacks) as caught:
        connection.get("/policies/000007/manifest", 1000)
    assert not caught.value.gone
