"""One version on a shelf: its file, which shards of it were checked, and what may be served.

`shelf` makes and drops it, `download` fills it, `server` reads it. A shard's line may be served
once all shards up to it were hashed here, the seal once all were.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from blake3 import blake3

from prime_core.api.errors import IntegrityError, StoreError
from prime_core.shardcast import folder
from prime_core.shardcast.library import Span
from prime_core.shardcast.weights_file import WeightsFile
from prime_core.store import layout
from prime_core.store.objects import MESSAGE_LIMIT
from prime_core.store.partial import ManifestReader

PART = ".weights.part"  # no object's name, so that nobody takes it for the whole file
_BLOCK = 2**20


class DiskFull(StoreError):
    """No room for a version: an older one may have to go."""


class Incoming:
    """A version that is being fetched or is complete.

    Args:
        directory: its own, below the shelf's `policies/`.
        reader: the messages that are known; may run ahead of the bytes.
    """

    def __init__(self, directory: Path, reader: ManifestReader) -> None:
        self.directory, self.reader = directory, reader
        self.complete = False
        self.servable = 0  # messages, from the header on
        self._done: set[int] = set()
        self.checked = threading.Event()  # set once nothing is left to hash of an earlier process
        self._lock = threading.RLock()
        self._file: WeightsFile | None = None
        self._renamed = False  # whether the bytes lie under their final name

    @property
    def version(self) -> int:
        """The policy version."""
        return self.reader.version

    @property
    def allocated(self) -> bool:
        """Whether it takes space on the disk."""
        return self.reader.begun

    @property
    def done_count(self) -> int:
        """Shards that were checked."""
        return len(self._done)

    @property
    def weights(self) -> Path:
        """The file of a complete version."""
        return self.directory / Path(layout.policy_weights_path(self.version)).name

    def allocate(self) -> None:
        """Make the directory and the file at its full size; StoreError where it doesn't fit."""
        header = self.reader.header
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            file = WeightsFile(self.directory / PART, os.O_RDWR | os.O_CREAT)
            file.extend(header.total_size)
            self._write_message(0)
        except OSError as error:
            raise self._failed(error) from error
        self._file = file
        self.servable = 1
        self.checked.set()

    def feed(self, message: bytes) -> None:
        """Take the next message; errors as `ManifestReader.feed`."""
        with self._lock:
            self.reader.feed(message)
            self._advance()

    def resume(self) -> None:
        """Write the messages that a full disk left unwritten; StoreError while it still is."""
        with self._lock:
            self._advance()

    def reserve(self, index: int) -> None:
        """Have the disk's blocks for a shard; StoreError where it's full."""
        file, header = self._file, self.reader.header
        if file is None:
            raise self._dropped()
        try:
            file.reserve(index * header.shard_size, header.size_of_shard(index))
        except OSError as error:
            raise self._failed(error) from error

    def write(self, index: int, start: int, data: memoryview) -> None:
        """Bytes of a shard at an offset within it, before they are checked.

        Raises:
            StoreError: the disk is full or failed.
        """
        file = self._file  # kept open by this name, should another thread drop the version
        if file is None:
            raise self._dropped()
        offset = index * self.reader.header.shard_size + start
        try:
            while data:
                with file.writing:
                    written = os.pwrite(file.number, data, offset)
                data, offset = data[written:], offset + written
        except OSError as error:
            raise self._failed(error) from error

    def mark(self, index: int, digest: bytes) -> None:
        """A shard's bytes are written: hold their hash to the line.

        Raises:
            IntegrityError: they are others.
            StoreError: its line can't be written.
        """
        with self._lock:
            if digest != self.reader.shards[index].blake3:
                raise IntegrityError(
                    f"shard {index} isn't the one that its line names",
                    where=str(self.directory),
                    fix="fetch it from another relay",
                )
            self._done.add(index)
            self._advance()

    def hash_front(self, index: int, size: int) -> bytes:
        """BLAKE3 of the first bytes of a checked shard, read back."""
        file = self._file
        if file is None:
            raise self._dropped()
        return self._hash(file, index, size)

    def has(self, index: int) -> bool:
        """Whether a shard was checked."""
        return index in self._done

    def span(self, index: int) -> Span | None:
        """Where a checked shard lies."""
        if not self.has(index):
            return None
        header = self.reader.header
        path = self.weights if self._renamed else self.directory / PART
        return Span(path, index * header.shard_size, header.size_of_shard(index))

    def recover(self, stop: threading.Event | None = None) -> None:
        """Read what is on disk; hash every shard that has a line.

        A partial version keeps its checked shards from the front; a sealed one must be whole.

        Args:
            stop: ends it after the shard that is being hashed; nothing is lost.

        Raises:
            PrimeError: nothing of it can be used.
        """
        sealed = (self.directory / Path(layout.policy_seal_path(self.version)).name).exists()
        renamed = sealed or self.weights.exists()  # it may have died before the seal's file
        path = self.weights if renamed else self.directory / PART
        try:
            self._read_messages()
            file = WeightsFile(path, os.O_RDONLY if sealed else os.O_RDWR)
            if not sealed:
                file.extend(self.reader.header.total_size)
            found, size = os.fstat(file.number).st_size, self.reader.header.total_size
            if found != size:
                raise IntegrityError(f"{found} bytes where {size} belong", where=str(path))
            self._file, self._renamed, self.servable = file, renamed, 1
            for shard in self.reader.shards:
                if stop is not None and stop.is_set():
                    return
                if self._hash(file, shard.index, shard.size) == shard.blake3:
                    with self._lock:
                        self._done.add(shard.index)
                        self._advance()
                elif sealed:
                    raise IntegrityError(f"shard {shard.index} is damaged", where=str(path))
        except OSError as error:
            raise self._failed(error) from error
        self.checked.set()

    def discard(self) -> None:
        """Remove its files from the disk; whoever has one open goes on reading."""
        with self._lock:
            self._file = None
            folder.remove(self.directory)

    def _read_messages(self) -> None:
        while not self.reader.sealed:
            path = self.directory / Path(self.reader.next_path()).name
            try:
                with path.open("rb") as file:
                    data = file.read(MESSAGE_LIMIT)
            except FileNotFoundError:
                if not self.reader.begun:
                    raise
                return
            self.reader.feed(data)

    def _hash(self, file: WeightsFile, index: int, size: int) -> bytes:
        digest, offset = blake3(), index * self.reader.header.shard_size
        while size > 0:
            block = os.pread(file.number, min(size, _BLOCK), offset)
            if not block:
                break
            digest.update(block)
            size, offset = size - len(block), offset + len(block)
        return digest.digest()

    def _advance(self) -> None:
        """Let out the lines whose shards are there, in order, and the seal after all of them."""
        messages, count = self.reader.messages, self.reader.header.shard_count
        while 1 <= self.servable < len(messages) and self.servable <= count:
            if self.servable - 1 not in self._done:
                return
            self._write_message(self.servable)
            self.servable += 1
        if self.servable == count + 1 and self.reader.sealed:
            self._finish()

    def _finish(self) -> None:
        try:
            if not self._renamed:
                (self.directory / PART).rename(self.weights)
                self._renamed = True
            self._write_message(self.servable)
        except OSError as error:
            raise self._failed(error) from error
        self.complete = True
        self.servable += 1

    def _write_message(self, index: int) -> None:
        """A message's file appears whole; the seal is the last of all."""
        count = self.reader.header.shard_count
        name = layout.policy_seal_path(self.version)
        if index == 0:
            name = layout.policy_header_path(self.version)
        elif index <= count:
            name = layout.policy_line_path(self.version, index - 1)
        target = self.directory / Path(name).name
        if target.exists():
            return
        temporary = self.directory / ".message"
        try:
            temporary.write_bytes(self.reader.messages[index])
            temporary.rename(target)
        except OSError as error:
            raise self._failed(error) from error

    def _dropped(self) -> StoreError:
        return StoreError(f"version {self.version} was dropped", where=str(self.directory))

    def _failed(self, error: OSError) -> StoreError:
        what, where = f"version {self.version} can't be kept: {error.strerror}", str(self.directory)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            fix = "free disk space, or lower the number of kept versions"
            return DiskFull(what, where=where, fix=fix)
        return StoreError(what, where=where)
