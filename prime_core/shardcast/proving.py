"""Whether a version that a relay lists exists: its signed header, asked for from that very relay.

`Announcements` and `Client.versions` hold a `Proofs` between them and what relays say, so that
versions that nobody signed cost the relay that lists them its good name, and nobody else a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from prime_core.api.errors import FormatError, IntegrityError
from prime_core.shardcast.connection import Connection, RelayLacks, RelayLied
from prime_core.shardcast.shelf import Shelf
from prime_core.store.objects import MESSAGE_LIMIT


class Proofs:
    """The versions whose headers were seen; used by several threads.

    Args:
        shelf: whose signer and run they must be of.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._lock = threading.Lock()
        self._seen: set[int] = set()

    def proven(
        self,
        connection: Connection,
        listed: Mapping[int, bool],
        cancelled: Callable[[], bool] | None = None,
    ) -> dict[int, bool]:
        """Those of a relay's listing that exist; it's asked for the headers of new ones.

        Raises:
            RelayLied: it lists what the trainer didn't sign.
            RelayError, Cancelled: as `Connection.get`.
        """
        found: dict[int, bool] = {}
        for version in sorted(listed, reverse=True):
            with self._lock:
                known = version in self._seen
            if (
                known
                or self._shelf.get(version) is not None
                or self._ask(connection, version, cancelled)
            ):
                found[version] = listed[version]
        with self._lock:
            self._seen |= found.keys()
        return found

    def _ask(
        self, connection: Connection, version: int, cancelled: Callable[[], bool] | None
    ) -> bool:
        target = f"/policies/{version:06d}/manifest?from=0"
        try:
            body = connection.get(target, MESSAGE_LIMIT + 1, cancelled=cancelled)
            self._shelf.reader(version).feed(body.partition(b"\n")[0])
        except RelayLacks as error:
            if error.gone:  # collected since it was listed
                return False
            raise RelayLied(f"it lists version {version}", where=connection.address) from error
        except (FormatError, IntegrityError) as error:
            raise RelayLied(
                f"it lists version {version}: {error.what}", where=connection.address
            ) from error
        return True
