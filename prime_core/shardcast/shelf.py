"""The versions on a relay's or a client's disk, whole ones and those that are coming in.

A version lies as in a run's store (docs/reference/policies.md), its bytes in one file, so that a
worker reads a client's directory like any store. What a shelf gives out was hashed by this process:
after a restart all of it is hashed again, so that nothing here needs an fsync.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.shardcast import folder
from prime_core.shardcast.incoming import DiskFull, Incoming
from prime_core.shardcast.library import Listing, Span
from prime_core.store import layout
from prime_core.store.partial import MAX_BYTES, ManifestReader

logger = logging.getLogger(__name__)


class Shelf:
    """A directory of versions of one run and one signer; used by several threads.

    Args:
        root: the directory; versions lie below `policies/`.
        signer: the address that must have signed.
        run_id: the run; without one an upstream could push another run of that signer.
        keep: newest versions that stay when another is begun.
        budget: bytes that all versions may take together; None for no limit.
        max_bytes: a version that says it's larger is refused.
    """

    def __init__(
        self,
        root: Path,
        signer: str,
        run_id: str,
        *,
        keep: int = 5,
        budget: int | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.root = root
        self._signer, self._run_id = signer, run_id
        self._keep, self._budget, self._max_bytes = keep, budget, max_bytes
        self._lock = threading.RLock()
        self._versions: dict[int, Incoming] = {}
        self._gone: set[int] = set()
        self._found = False

    def reader(self, version: int) -> ManifestReader:
        """A reader that takes only messages of this shelf's signer and run."""
        return ManifestReader(version, self._signer, run_id=self._run_id, max_bytes=self._max_bytes)

    def find(self) -> None:
        """Take note of what an earlier process left, so that nobody fetches it; hashes nothing.

        Raises:
            StoreError: something there isn't this shelf's, and stays as it is.
        """
        if self._found:
            return
        found = folder.versions(self.root, self._signer, self._run_id)
        (self.root / layout.POLICIES).mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._found = True
            for version in found.keys() - self._versions.keys():
                reader = self.reader(version)
                with suppress(FormatError, IntegrityError):  # `recover` tells
                    reader.feed(found[version])
                entry = Incoming(self.root / layout.policy_dir(version), reader)
                self._versions[version] = entry

    def recover(self, stop: threading.Event | None = None) -> None:
        """Take in what an earlier process left, shard by shard as it's hashed again.

        Args:
            stop: ends it; what wasn't hashed stays on the disk for the next process.

        Raises:
            StoreError: as `find`.
        """
        self.find()
        with self._lock:
            entries = sorted(self._versions.items(), reverse=True)
        for version, entry in entries:
            if entry.checked.is_set():
                continue
            try:
                if stop is None or not stop.is_set():
                    entry.recover(stop)
            except PrimeError as error:
                logger.warning("version %d is dropped: %s", version, error)
                with self._lock:
                    if self._versions.get(version) is entry:
                        self.drop(version)
                        self._gone.discard(version)
            finally:
                entry.checked.set()

    def begin(self, header: bytes, version: int) -> Incoming:
        """Start a version, or go on with one; makes room first.

        Raises:
            FormatError, IntegrityError: not a header of this shelf's signer, run and the version.
            StoreError: the disk or the budget can't hold it.
        """
        with self._lock:
            known = self._versions.get(version)
            if known is not None:
                return known
            reader = self.reader(version)
            reader.feed(header)
            size = reader.header.total_size
            self._make_room(version, size)
            entry = Incoming(self.root / layout.policy_dir(version), reader)
            while True:
                try:
                    entry.allocate()
                    break
                except DiskFull:
                    if not self.evict_oldest(version):
                        entry.discard()
                        raise
            self._versions[version] = entry
            self._gone.discard(version)
            return entry

    def get(self, version: int) -> Incoming | None:
        """A version, whole or not."""
        with self._lock:
            return self._versions.get(version)

    def whole(self) -> list[int]:
        """Versions that are complete, ascending."""
        with self._lock:
            return sorted(v for v, entry in self._versions.items() if entry.complete)

    def present(self) -> list[int]:
        """Versions that are complete, or may be once they have been hashed again, ascending."""
        with self._lock:
            entries = self._versions.items()
            return sorted(v for v, each in entries if each.complete or not each.checked.is_set())

    def drop(self, version: int) -> None:
        """Remove a version; who reads it goes on reading."""
        with self._lock:
            entry = self._versions.pop(version, None)
            if entry is not None:
                entry.discard()
                self._gone.add(version)

    def trim(self, keep: Sequence[int] | None = None) -> None:
        """Remove versions older than the newest `keep` whole ones, or all but the given ones."""
        with self._lock:
            if keep is not None:
                old = [version for version in self._versions if version not in keep]
            else:
                newest = self.whole()[-self._keep :]
                floor = newest[0] if len(newest) == self._keep else -1
                old = [version for version in self._versions if version < floor]
            for version in old:
                self.drop(version)

    def used(self) -> int:
        """Bytes that the versions take on disk."""
        with self._lock:
            return sum(e.reader.header.total_size for e in self._versions.values() if e.allocated)

    def listing(self) -> list[Listing]:
        """As `Library`."""
        with self._lock:
            entries = sorted(self._versions.items())
        return [
            Listing(version, entry.servable, entry.complete)
            for version, entry in entries
            if entry.servable
        ]

    def messages(self, version: int, start: int) -> Sequence[bytes] | None:
        """As `Library`."""
        entry = self.get(version)
        return None if entry is None else entry.reader.messages[start : entry.servable]

    def span(self, version: int, index: int) -> Span | None:
        """As `Library`."""
        entry = self.get(version)
        return None if entry is None else entry.span(index)

    def gone(self, version: int) -> bool:
        """As `Library`."""
        with self._lock:
            if version in self._versions:
                return False
            whole = self.whole()
            return version in self._gone or (len(whole) >= self._keep and version < whole[0])

    def _make_room(self, version: int, size: int) -> None:
        if self._budget is None:
            return
        if size > self._budget:
            raise StoreError(
                f"version {version} takes {size} bytes, the budget is {self._budget}",
                where=str(self.root),
                fix="raise the disk budget",
            )
        while self.used() + size > self._budget:
            if not self.evict_oldest(version):
                raise StoreError(
                    f"version {version} doesn't fit into the budget beside newer ones",
                    where=str(self.root),
                    fix="raise the disk budget",
                )

    def evict_oldest(self, below: int) -> bool:
        """Drop the oldest version, if it's older than `below`: the disk is full."""
        with self._lock:
            older = [version for version in self._versions if version < below]
            if not older:
                return False
            logger.warning("version %d makes room for version %d", min(older), below)
            self.drop(min(older))
            return True
