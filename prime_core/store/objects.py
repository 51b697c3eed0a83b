"""Immutable objects behind a directory or an fsspec URL: written once, whole or not at all.

Every process of a run reads and writes its objects through `ObjectStore`. A name that can be
listed or read is a complete object, whatever was killed while it was written.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from prime_core.api.errors import FormatError, StoreError
from prime_core.store.layout import check_path

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

Names: TypeAlias = list[str]

# Bytes that one JSON message may hold; shards and submissions have limits of their own.
MESSAGE_LIMIT = 16 * 2**20

# No file has the name: nothing is there, or a directory, a link to itself, a socket.
_ABSENT = (errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO)


class ObjectExistsError(StoreError):
    """An object with this name exists already."""


class ObjectMissingError(StoreError):
    """No object has this name."""


class Backend(Protocol):
    """One kind of storage. Paths are checked by `ObjectStore`; errors are OSErrors."""

    def create(self, path: str, data: bytes) -> None:
        """Write a new object; FileExistsError if the name is taken."""
        ...

    def create_from(self, path: str, local: Path) -> None:
        """Copy a local file into a new object; FileExistsError if the name is taken."""
        ...

    def read(self, path: str, limit: int | None) -> bytes | None:
        """The object's bytes, None above the limit; FileNotFoundError if there is none."""
        ...

    def exists(self, path: str) -> bool:
        """Whether the object exists."""
        ...

    def entries(self, prefix: str) -> tuple[Names, Names]:
        """Base names of objects and of directories directly under a prefix, unsorted."""
        ...


class ObjectStore:
    """Objects of one run below one URL.

    Args:
        url: a directory, `file://DIR`, `memory://NAME` (this process only) or `s3://BUCKET/...`.

    Raises:
        StoreError: the URL's file system can't create an object conditionally, so that write-once
            can't be held.
    """

    def __init__(self, url: str) -> None:
        from prime_core.store.backends import DirectoryBackend, open_backend

        self.url = url
        self._backend: Backend = open_backend(url)
        self._root = self._backend.root if isinstance(self._backend, DirectoryBackend) else None

    def put(self, path: str, data: bytes) -> None:
        """Write a new object atomically and durably.

        Raises:
            ObjectExistsError: the name is taken; the object there is left as it is.
            StoreError: the name is no object path, or the bytes can't be written (disk full, ...).
        """
        self._create(path, lambda: self._backend.create(path, data))

    def put_file(self, path: str, local: Path) -> None:
        """Copy a local file into a new object; errors as `put`."""
        self._create(path, lambda: self._backend.create_from(path, local))

    def put_linked(self, path: str, local: Path) -> None:
        """Make a local file an object without copying its bytes, where the disk allows it.

        The file must be on disk (fsync) and is never written again. A remote store, another disk
        or one without hard links gets a copy. Errors as `put`.
        """
        from prime_core.store.backends import DirectoryBackend

        backend = self._backend
        if isinstance(backend, DirectoryBackend):
            self._create(path, lambda: backend.link_from(path, local))
        else:
            self.put_file(path, local)

    def put_same(self, path: str, data: bytes) -> bool:
        """Write the object, or confirm that the one there holds these bytes; True if written.

        This is what a restarted process uses for what it may have written before it died.

        Raises:
            ObjectExistsError: an object with other bytes has the name.
            StoreError: as `put`.
        """
        try:
            self.put(path, data)
        except ObjectExistsError:
            if self.get(path) != data:
                raise ObjectExistsError(
                    "another object with other bytes has this name",
                    where=self._where(path),
                    fix="objects are never overwritten; use a fresh run directory",
                ) from None
            return False
        return True

    def get(self, path: str, limit: int | None = None) -> bytes:
        """The object's bytes.

        Raises:
            ObjectMissingError: there is none.
            FormatError: it holds more than `limit` bytes.
            StoreError: it can't be read.
        """
        check_path(path)
        try:
            data = self._backend.read(path, limit)
        except OSError as error:
            # a file system of fsspec sets no errno
            if not (isinstance(error, FileNotFoundError) or error.errno in _ABSENT):
                raise self._failed("can't be read", path, error) from error
            raise ObjectMissingError(
                "no such object", where=self._where(path), fix="wait for the process that writes it"
            ) from error
        if data is None:
            raise FormatError(
                f"object holds more than {limit} bytes",
                where=self._where(path),
                fix="refuse whoever wrote it, or raise the limit",
            )
        return data

    def exists(self, path: str) -> bool:
        """Whether a complete object has this name."""
        check_path(path)
        try:
            return self._backend.exists(path)
        except OSError as error:
            raise self._failed("can't be looked up", path, error) from error

    def list(self, prefix: str) -> Names:
        """Sorted base names of the complete objects directly under a prefix; [] if absent."""
        return sorted(self._entries(prefix)[0])

    def folders(self, prefix: str) -> Names:
        """Sorted base names of the directories directly under a prefix; [] if absent."""
        return sorted(self._entries(prefix)[1])

    def local_path(self, path: str) -> Path | None:
        """Where the object lies on this machine's disk; None for a remote store."""
        check_path(path)
        return None if self._root is None else self._root / path

    def sweep(self) -> int:
        """Remove temporary files that killed writers of this machine left; how many were removed.

        A temporary file of a process that lives is left alone, so that anyone may call this at
        any time.
        """
        from prime_core.store.backends import DirectoryBackend

        if not isinstance(self._backend, DirectoryBackend):
            return 0
        try:
            return self._backend.sweep()
        except OSError as error:
            raise self._failed("can't be swept", "", error) from error

    def _entries(self, prefix: str) -> tuple[Names, Names]:
        prefix = prefix.rstrip("/")
        if prefix:
            check_path(prefix)
        try:
            objects, directories = self._backend.entries(prefix)
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        except OSError as error:
            raise self._failed("can't be listed", prefix, error) from error
        return (
            [name for name in objects if not name.startswith(".")],
            [name for name in directories if not name.startswith(".")],
        )

    def _create(self, path: str, write: Callable[[], None]) -> None:
        check_path(path)
        try:
            write()
        except FileExistsError as error:
            raise ObjectExistsError(
                "object exists already, and objects are never overwritten",
                where=self._where(path),
                fix="resume the run with --resume, or use a fresh run directory",
            ) from error
        except OSError as error:
            raise self._failed("can't be written", path, error) from error

    def _failed(self, what: str, path: str, error: OSError) -> StoreError:
        from prime_core.store.backends import advice

        reason = error.strerror or str(error) or type(error).__name__
        return StoreError(f"object {what}: {reason}", where=self._where(path), fix=advice(error))

    def _where(self, path: str) -> str:
        return f"{self.url.rstrip('/')}/{path}"


def open_store(config: RunConfig) -> ObjectStore:
    """The store of a run: `[store] url`, else the run's directory."""
    return ObjectStore(config.store.url or str(config.run.dir))
