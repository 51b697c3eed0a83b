"""What a server serves: versions, their messages, and where the bytes of their shards lie.

`server` asks; the origin answers from the run's store (`StoreLibrary`), a relay from its `Shelf`.
Everything that a library names may be served at once: the bytes are on disk and were checked.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.store import layout
from prime_core.store.objects import MESSAGE_LIMIT, ObjectMissingError, ObjectStore
from prime_core.store.partial import ManifestReader

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listing:
    """One version as a server lists it: how many messages it can give, and whether it's whole."""

    version: int
    messages: int
    sealed: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a shard in a local file."""

    path: Path
    offset: int
    size: int


class Library(Protocol):
    """The versions that one server holds."""

    def listing(self) -> list[Listing]:
        """All versions, ascending."""
        ...

    def messages(self, version: int, start: int) -> Sequence[bytes] | None:
        """Messages from number `start` on that may be served now; None where it isn't here."""
        ...

    def span(self, version: int, index: int) -> Span | None:
        """Where a shard lies; None where it isn't here, or not yet."""
        ...

    def gone(self, version: int) -> bool:
        """Whether the version was here and won't come back."""
        ...


@dataclass(slots=True)
class _Published:
    """A version in the store; `gone` once it's collected, or has a message nobody may be given."""

    reader: ManifestReader
    gone: bool = False
    damaged: bool = False


@dataclass(slots=True)
class StoreLibrary:
    """The versions in a run's store, a directory, while the trainer writes them.

    Args:
        store: of the run; one that isn't on this disk can't be served.

    Raises:
        StoreError: a remote store.
    """

    store: ObjectStore
    _versions: dict[int, _Published] = field(default_factory=dict)
    _newest: int = -1

    def __post_init__(self) -> None:
        if self.store.local_path(layout.RUN) is None:
            raise StoreError(
                "an origin serves a store on its own disk",
                where=self.store.url,
                fix="run it on the trainer's machine, with [store] url unset or file://",
            )

    def refresh(self) -> bool:
        """Take in what the trainer has written since; whether there was anything.

        Costs two or three lookups where nothing is new, so that it may be asked often.
        """
        changed = self._scan() if self._newest < 0 else False
        while self._newest >= 0:
            changed = self._advance(self._versions[self._newest]) or changed
            if not self.store.exists(layout.policy_header_path(self._newest + 1)):
                break
            self._newest += 1
            self._add(self._newest)
            changed = True
        return changed

    def author(self) -> tuple[str, str] | None:
        """Who signs the versions, and of which run they are; None before there is one."""
        begun = [held.reader for held in self._versions.values() if held.reader.begun]
        return (begun[-1].signer, begun[-1].header.run_id) if begun else None

    def drop_collected(self) -> None:
        """Notice which versions' bytes the trainer has deleted."""
        for version, held in self._versions.items():
            if not held.gone and held.reader.sealed and self.span(version, 0) is None:
                held.gone = True

    def listing(self) -> list[Listing]:
        """All versions that have bytes, ascending."""
        return [
            Listing(version, len(held.reader.messages), held.reader.sealed)
            for version, held in sorted(self._versions.items())
            if not held.gone and held.reader.begun
        ]

    def messages(self, version: int, start: int) -> Sequence[bytes] | None:
        """As `Library`."""
        held = self._versions.get(version)
        if held is None or held.gone:
            return None
        return held.reader.messages[start:]

    def span(self, version: int, index: int) -> Span | None:
        """As `Library`."""
        held = self._versions.get(version)
        if held is None or index >= len(held.reader.shards):
            return None
        header = held.reader.header
        shard = self.store.local_path(layout.policy_shard_path(version, index))
        weights = self.store.local_path(layout.policy_weights_path(version))
        assert shard is not None
        assert weights is not None
        if weights.exists():
            return Span(weights, index * header.shard_size, header.size_of_shard(index))
        return Span(shard, 0, header.size_of_shard(index)) if shard.exists() else None

    def gone(self, version: int) -> bool:
        """As `Library`."""
        held = self._versions.get(version)
        return held is not None and held.gone

    def _scan(self) -> bool:
        names = (layout.parse_numbered(name) for name in self.store.folders(layout.POLICIES))
        for version in sorted(number for number in names if number is not None):
            self._add(version)
            self._advance(self._versions[version])
            self._newest = version
        self.drop_collected()
        return self._newest >= 0

    def _add(self, version: int) -> None:
        self._versions[version] = _Published(ManifestReader(version, None))

    def _advance(self, held: _Published) -> bool:
        """Read the messages that follow; one that the trainer didn't write ends that version only.

        Whether something has changed.
        """
        reader, before = held.reader, len(held.reader.messages)
        if held.damaged:
            return False
        try:
            while not reader.sealed:
                reader.feed(self.store.get(reader.next_path(), MESSAGE_LIMIT))
        except ObjectMissingError:
            pass
        except (FormatError, IntegrityError) as error:
            held.damaged = held.gone = True
            logger.error("%s", _damaged(reader.version, error))
            return True
        return len(reader.messages) > before


def _damaged(version: int, error: PrimeError) -> StoreError:
    return StoreError(
        f"version {version} isn't served, its store holds what the trainer didn't write: "
        f"{error.what}",
        where=error.where,
        fix="restore the file from a copy of the run, then start the origin again",
    )
