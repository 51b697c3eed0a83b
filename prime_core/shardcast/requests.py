"""What comes over a server's sockets: the head of one HTTP request, read strictly.

`server` reads a head of bounded size and parses it here. Whatever isn't a plain GET or HEAD of a
short ASCII path is an error with its HTTP status, and no path is ever joined to a directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

HEAD_LIMIT = 8192
MAX_HEADERS = 64

_LINE = re.compile(rb"(GET|HEAD) (/[!-~]{0,1023}) HTTP/1\.([01])")
_METHOD = re.compile(rb"[A-Z]{1,16} ")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*)")
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")


class BadRequest(Exception):
    """A request that gets an error status and the end of its connection."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


@dataclass(frozen=True, slots=True)
class Request:
    """One request: path without query, the query's numbers, the range as asked for."""

    head_only: bool
    path: str
    query: dict[str, str]
    range: str | None
    keep_alive: bool

    def number(self, name: str, default: int, most: int) -> int:
        """A number of the query, at most `most`; BadRequest(400) where it isn't one."""
        text = self.query.get(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise BadRequest(400)
        return min(int(text), most)

    def span(self, size: int) -> tuple[int, int]:
        """First byte and count of what is asked for; BadRequest(416) outside of it."""
        if self.range is None:
            return 0, size
        found = _RANGE.fullmatch(self.range)
        if found is None:
            raise BadRequest(416)
        first = int(found[1])
        last = min(int(found[2]), size - 1) if found[2] else size - 1
        if first > last:
            raise BadRequest(416)
        return first, last - first + 1


def parse_request(head: bytes) -> Request:
    """Parse a head up to and with its empty line.

    Raises:
        BadRequest: 400 malformed, 405 another method, 413 a body, 431 too many headers.
    """
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    start = _LINE.fullmatch(lines[0])
    if start is None:
        raise BadRequest(405 if _METHOD.match(lines[0]) and lines[0][:4] != b"GET " else 400)
    if len(lines) - 1 > MAX_HEADERS:
        raise BadRequest(431)
    headers: dict[str, str] = {}
    for line in lines[1:]:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise BadRequest(400)
        name = found[1].decode().lower()
        if name in headers and name in ("content-length", "range", "host"):
            raise BadRequest(400)
        headers[name] = found[2].decode("latin-1").strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequest(413)
    path, _, query = start[2].decode().partition("?")
    connection = headers.get("connection", "").lower()
    return Request(
        head_only=start[1] == b"HEAD",
        path=path,
        query=dict(parse_qsl(query, max_num_fields=8)) if query.count("&") < 8 else {},
        range=headers.get("range"),
        keep_alive=connection != "close" if start[3] == b"1" else connection == "keep-alive",
    )
