"""One thread's connections, one a relay, opened on use.

Each thread of a `Download` holds its own, so that none waits for another's answer.
"""

from __future__ import annotations

import ssl

from prime_core.shardcast.connection import Connection, Patience


class Connections:
    """Connections by address, closed together at the end of a `with`."""

    def __init__(self, patience: Patience, tls: ssl.SSLContext | None) -> None:
        self._patience, self._tls = patience, tls
        self._open: dict[str, Connection] = {}

    def __getitem__(self, address: str) -> Connection:
        """The connection to a relay."""
        if address not in self._open:
            self._open[address] = Connection(address, self._patience, self._tls)
        return self._open[address]

    def __enter__(self) -> Connections:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.close()
