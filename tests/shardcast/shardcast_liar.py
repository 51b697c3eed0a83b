"""A relay that lies or fails in one way, over an honest library."""

from __future__ import annotations

import json
import socketserver
import threading
import time
import zlib

from shardcast_support import SHARD

from prime_core.shardcast.library import Library


class Liar(socketserver.ThreadingTCPServer):
    """A relay over an honest library that lies in one way."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, library: Library, kind: str) -> None:
        self.library, self.kind = library, kind
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _LiarHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Liar:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _LiarHandler(socketserver.StreamRequestHandler):
    server: Liar

    def handle(self) -> None:
        try:
            while self._one():
                pass
        except OSError:
            return

    def _one(self) -> bool:
        line = self.rfile.readline().decode()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        if not line:
            return False
        target = line.split()[1]
        self.server.asked.append(target)
        kind, library = self.server.kind, self.server.library
        if kind == "head bomb":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-Bomb: " + b"b" * 4000 + b"\r\n")
        if kind == "redirect":
            self.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n")
            return self._body(b"")
        if target.startswith("/versions"):
            listed = [[each.version, each.messages, each.sealed] for each in library.listing()]
            if kind == "phantom versions":
                listed += [[2**31 - 1 - number, 10, True] for number in range(40)]
            return self._answer(json.dumps({"versions": listed}).encode())
        version = int(target.split("/")[2])
        if "delta" in target:
            if kind == "wrong delta":
                return self._answer(zlib.compress(bytes(SHARD)))
            self.wfile.write(b"HTTP/1.1 404 Not Found\r\n")
            return self._body(b"")
        if "/manifest" in target:
            return self._manifest(version, int(target.partition("from=")[2].split("&")[0]))
        span = library.span(version, int(target[-9:-4]))
        assert span is not None
        with span.path.open("rb") as file:
            file.seek(span.offset)
            return self._shard(file.read(span.size))

    def _manifest(self, version: int, start: int) -> bool:
        kind = self.server.kind
        asked = 0 if kind == "stale version" else version
        messages = [*(self.server.library.messages(asked, 0) or ())][start:]
        if kind == "forged manifest" and messages:
            message = json.loads(messages[0])
            message["run_id"] = "mine"
            messages[0] = json.dumps(message, sort_keys=True, separators=(",", ":")).encode()
        if kind == "silence for messages":
            time.sleep(1000)
        if kind == "endless manifest":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
            while True:
                self.wfile.write(b"x" * 65536)
        if kind == "error page":
            return self._answer(b"<html>" + b"Bad Gateway " * 300)
        return self._answer(b"".join(message + b"\n" for message in messages))

    def _shard(self, data: bytes) -> bool:
        kind = self.server.kind
        if kind == "wrong bytes":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if kind == "wrong size":
            data = data[:-1]
        if kind == "error page for shards":
            data = (b"<html>Bad Gateway" * len(data))[: len(data)]
        if kind == "endless body":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                self.wfile.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        if kind == "breaks off":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
            self.wfile.write(data[: len(data) // 2])
            return False
        if kind == "trickle":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
            for byte in data:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        if kind == "silence":
            time.sleep(1000)
        return self._answer(data)

    def _answer(self, body: bytes) -> bool:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        return self._body(body)

    def _body(self, body: bytes) -> bool:
        self.wfile.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return True
