"""A relay's URL, and the head of its answers, read strictly.

`connection` uses both, `client` the first before anything is asked.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from prime_core.api.errors import FormatError

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: [^\r\n]*)?")
_LENGTH = re.compile(rb"\d{1,18}")


def parse_address(text: str) -> tuple[str, str, int, str]:
    """(scheme, host, port, path prefix) of a relay's URL; FormatError where it isn't one."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query:
        raise FormatError(
            f"{text!r} is no relay's address", fix="write http://HOST:PORT or https://HOST"
        )
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname, port or default, parts.path.rstrip("/")


def parse_head(head: bytes) -> tuple[int, int] | None:
    """(status, length of the body) of an answer; None where it has none, or another encoding."""
    lines = head.split(b"\r\n")
    status = _STATUS.fullmatch(lines[0])
    fields: dict[bytes, bytes] = {}
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        fields.setdefault(name.strip().lower(), value.strip())
    length = fields.get(b"content-length", b"")
    if status is None or not _LENGTH.fullmatch(length) or b"transfer-encoding" in fields:
        return None
    return int(status[1]), int(length)
