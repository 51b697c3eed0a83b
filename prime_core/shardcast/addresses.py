"""HOST:PORT, as processes are told where to listen."""

from __future__ import annotations

from prime_core.api.errors import FormatError


def split_address(text: str) -> tuple[str, int]:
    """HOST:PORT; FormatError where it isn't."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise FormatError(f"{text!r} is no address to listen at", fix="write HOST:PORT")
    return host.strip("[]"), int(port)
