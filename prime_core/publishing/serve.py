"""Serves an index over HTTP on this machine: its pages to browsers, its simple pages to pip.

Called by `prime-core index serve`; reads any index that can be opened as a store. For a public
server any static one will do: this one adds only that it answers in the format that pip prefers.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from prime_core.api.errors import FormatError, StoreError
from prime_core.publishing.pages import TYPES
from prime_core.publishing.source import StoreSource
from prime_core.publishing.wheel import MAX_WHEEL
from prime_core.store.layout import check_path
from prime_core.store.objects import ObjectMissingError, ObjectStore

SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"


def make_server(url: str, host: str, port: int) -> ThreadingHTTPServer:
    """A server of the index at `url`; port 0 takes a free one.

    Raises:
        StoreError: the port is taken, or there is no index.
    """
    source = StoreSource(ObjectStore(url))
    if not source.store.exists("index.json"):
        raise StoreError(
            "there is no index", where=url, fix=f"start one with `prime-core index build {url}`"
        )
    try:
        return ThreadingHTTPServer((host, port), partial(Handler, source))
    except OSError as error:
        raise StoreError(
            f"can't listen on {host}:{port}: {error.strerror}", fix="choose another --port"
        ) from error


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD with objects of the index."""

    server_version = "prime-core-index"

    def __init__(self, source: StoreSource, *arguments: Any) -> None:
        self._source = source
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """An object, or the index page of a folder."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """As GET, without the object."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/")
        kind = ""
        if path == "" or path.endswith("/"):
            wants_json = path.startswith("simple/") and SIMPLE_JSON in self.headers.get(
                "Accept", ""
            )
            path, kind = (f"{path}index.json", SIMPLE_JSON) if wants_json else (
                f"{path}index.html", "")  # fmt: skip
        try:
            data = self._source.get(check_path(path), MAX_WHEEL)
        except ObjectMissingError:
            self._missing(path)
            return
        except (StoreError, FormatError):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        plain = TYPES.get(PurePosixPath(path).suffix, "application/octet-stream")
        self.send_header("Content-Type", kind or plain)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _missing(self, path: str) -> None:
        """A folder without its slash leads to the one with it; anything else isn't here."""
        if self._source.store.exists(f"{path}/index.html"):
            self.send_response(HTTPStatus.MOVED_PERMANENTLY)
            self.send_header("Location", f"/{path}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: a terminal full of requests hides what matters."""
