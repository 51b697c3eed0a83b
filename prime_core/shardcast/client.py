"""The client of a tree of relays: what they have, and one version on this disk, checked.

`prime-core fetch`, the follower beside a worker and every relay (whose upstreams are its relays)
hold one. It opens connections and accepts none: nodes serve nobody.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence

from prime_core.api.errors import FormatError
from prime_core.shardcast.asking import ask_all
from prime_core.shardcast.choosing import Relays, Rule
from prime_core.shardcast.connection import (
    Connection,
    RelayError,
    RelayLied,
    RelayUnverified,
    parse_address,
)
from prime_core.shardcast.counting import Counters
from prime_core.shardcast.download import Download, Settings
from prime_core.shardcast.incoming import Incoming
from prime_core.shardcast.proving import Proofs
from prime_core.shardcast.server import PROBE_BYTES
from prime_core.shardcast.shelf import Shelf

logger = logging.getLogger(__name__)

LISTING_LIMIT = 64 * 1024
LISTED = 64  # newest versions of one relay that are looked at


class Client:
    """Fetches versions into a shelf.

    Args:
        relays: URLs; each is believed nothing.
        shelf: where versions go.
        settings: connections, patience.
        counters: of the process.
        rule: how relays are chosen.

    Raises:
        FormatError: no relay, or one that is no URL.
    """

    def __init__(
        self,
        relays: Sequence[str],
        shelf: Shelf,
        *,
        settings: Settings | None = None,
        counters: Counters | None = None,
        rule: Rule = "sampled",
    ) -> None:
        if not relays:
            raise FormatError("no relay is named", fix="name at least one: http://HOST:PORT")
        for address in relays:
            parse_address(address)
        self.shelf = shelf
        self.relays = Relays(relays, rule=rule)
        self.settings = settings or Settings()
        self.counters = counters or Counters()
        self.proofs = Proofs(shelf)

    def probe(self) -> dict[str, RelayError]:
        """Measure every relay with its probe file, all at once; what kept relays from answering.

        One that is late isn't waited for; its bandwidth is what it can be at most.
        """
        failures: dict[str, RelayError] = {}
        started = time.monotonic()

        def measure(address: str) -> bool:
            try:
                with self.connection(address) as connection:
                    connection.get_into("/probe.bin", PROBE_BYTES, lambda data: None)
            except RelayError as error:
                self.relays.failed(address)
                failures[address] = error
                level = logging.WARNING if isinstance(error, RelayUnverified) else logging.INFO
                logger.log(level, "probe: %s", error)
                return False
            self.relays.succeeded(address, PROBE_BYTES, time.monotonic() - started)
            return True

        for address in ask_all(self.relays.addresses, measure):
            logger.info("probe: %s is late, and isn't waited for", address)
            self.relays.measured(address, PROBE_BYTES, time.monotonic() - started)
        return dict(failures)

    def versions(self) -> dict[int, bool]:
        """The versions that any relay has, and whether whole; relays that can't be asked, that are
        late, or that list what nobody signed, are left out."""
        found: dict[int, bool] = {}
        lock = threading.Lock()

        def ask(address: str) -> bool:
            try:
                with self.connection(address) as connection:
                    listed = self.proofs.proven(connection, read_listing(connection))
            except RelayLied:
                self.relays.lied(address)
                return False
            except RelayError as error:
                self.relays.failed(address)
                logger.info("versions: %s", error)
                return False
            with lock:
                for version, whole in listed.items():
                    found[version] = found.get(version, False) or whole
            return True

        for address in ask_all(self.relays.addresses, ask):
            logger.info("versions: %s is late, and isn't waited for", address)
        with lock:
            return dict(found)

    def download(
        self,
        version: int,
        *,
        stop: threading.Event | None = None,
        changed: Callable[[], None] | None = None,
    ) -> Download:
        """The transfer of a version; `run` it."""
        return Download(
            version,
            self.shelf,
            self.relays,
            self.settings,
            self.counters,
            stop=stop,
            changed=changed,
        )

    def fetch(self, version: int) -> Incoming:
        """A version, whole and checked; errors as `Download.run`."""
        return self.download(version).run()

    def connection(self, address: str) -> Connection:
        """A connection of its own to a relay."""
        return Connection(address, self.settings.patience, self.settings.tls)


def read_listing(
    connection: Connection,
    *,
    after: int | None = None,
    wait_s: int = 0,
    cancelled: Callable[[], bool] | None = None,
) -> dict[int, bool]:
    """Ask for a relay's versions, newest `LISTED` of them; RelayLied where it's no listing."""
    query = f"?wait={wait_s}" + (f"&after={after}" if after is not None else "")
    data = connection.get(f"/versions{query}", LISTING_LIMIT, wait_s=wait_s, cancelled=cancelled)
    try:
        entries = json.loads(data)["versions"]
        found = {int(version): bool(whole) for version, _, whole in entries}
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise RelayLied("its listing can't be read", where=connection.address) from error
    newest = sorted(version for version in found if 0 <= version < 2**31)[-LISTED:]
    return {version: found[version] for version in newest}
