"""The kinds of storage behind an `ObjectStore`: a directory, or an object store by fsspec.

Only `prime_core.store.objects` uses this. Each backend creates a name once: by `link` on a file
system, which fails on an existing name, by a conditional put in an object store.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlsplit

from prime_core.api.errors import StoreError

if TYPE_CHECKING:
    from prime_core.store.objects import Backend

TEMPORARY = ".tmp-"
# Protocols whose pipe_file(mode="create") is one conditional request (S3: If-None-Match: *), or is
# made one by a lock in the only process that can see the store.
CONDITIONAL = ("memory", "s3", "s3a")

_ADVICE = {
    errno.ENOSPC: "free disk space or move the run to another disk, then resume with --resume",
    errno.EDQUOT: "the disk quota is used up: free space, then resume with --resume",
    errno.EFBIG: "the file size limit is too low: raise `ulimit -f`, then resume with --resume",
    errno.EACCES: "give this user read and write permission on the run directory",
    errno.EPERM: "give this user read and write permission; the disk must allow hard links",
    errno.EROFS: "the disk is mounted read-only: use another run directory",
    errno.ENOTDIR: "a file stands where the run needs a directory: use another run directory",
    errno.EMFILE: "too many open files: raise `ulimit -n`",
    errno.EOPNOTSUPP: "this file system has no hard links: use another one or an object store",
}

_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


def advice(error: OSError) -> str:
    """What to do about a storage error."""
    known = _ADVICE.get(error.errno) if error.errno is not None else None
    return known or "check that the storage is there and writable, then resume with --resume"


def open_backend(url: str) -> Backend:
    """The backend of a URL; StoreError if it can't hold write-once."""
    protocol, _, rest = url.partition("://")
    if not rest and "://" not in url:
        return DirectoryBackend(Path(url))
    if protocol == "file":
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise StoreError(
                f"{url!r} names a host", where="[store] url", fix="write file:///absolute/directory"
            )
        return DirectoryBackend(Path(unquote(parts.path)))
    if protocol not in CONDITIONAL:
        raise StoreError(
            f"storage {protocol}:// has no conditional put, so objects could be overwritten",
            where="[store] url",
            fix="use a directory, file:// or s3://",
        )
    return FsspecBackend(url, protocol)


class DirectoryBackend:
    """Objects as files below a directory of a file system with hard links."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100  symlinks stay as the user wrote them

    def create(self, path: str, data: bytes) -> None:
        """Write, fsync, link under the name, fsync the directory."""

        def fill(file: BinaryIO) -> None:
            file.write(data)

        self._publish(path, fill)

    def create_from(self, path: str, local: Path) -> None:
        """Copy the file's bytes as `create`; never links, as the caller may write it again."""
        with local.open("rb") as source:
            self._publish(path, lambda file: shutil.copyfileobj(source, file, 2**20))

    def link_from(self, path: str, local: Path) -> None:
        """A second name for the file's bytes; a copy where the disk gives none."""
        target = self.root / path
        _make_directories(target.parent)
        try:
            os.link(local, target)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            self.create_from(path, local)
        else:
            _sync_directory(target.parent)

    def read(self, path: str, limit: int | None) -> bytes | None:
        """All bytes, or None above the limit; what isn't a regular file is no object."""
        # O_NONBLOCK: a named pipe that somebody put there would block the open
        handle = os.open(self.root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", buffering=0) as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
            if limit is not None and found.st_size > limit:
                return None
            return file.read()

    def exists(self, path: str) -> bool:
        """Whether a regular file has the name."""
        return (self.root / path).is_file()

    def entries(self, prefix: str) -> tuple[list[str], list[str]]:
        """Names of files and directories; pipes, devices and links to nothing are neither."""
        files: list[str] = []
        directories: list[str] = []
        with os.scandir(self.root / prefix) as found:
            for entry in found:
                with suppress(OSError):  # a link to itself
                    if entry.is_dir():
                        directories.append(entry.name)
                    elif entry.is_file():
                        files.append(entry.name)
        return files, directories

    def sweep(self) -> int:
        """Remove the temporary files of processes of this machine that are gone."""
        removed = 0
        mine = f"{TEMPORARY}{_machine()}-"
        for directory, _, names in os.walk(self.root):
            for name in names:
                if name.startswith(mine) and not _alive(name.removeprefix(mine).split("-")[0]):
                    (Path(directory) / name).unlink(missing_ok=True)
                    removed += 1
        return removed

    def _publish(self, path: str, fill: Callable[[BinaryIO], Any]) -> None:
        target = self.root / path
        if target.exists():  # saves the write; `link` below is what decides
            raise FileExistsError(errno.EEXIST, "exists", str(target))
        _make_directories(target.parent)
        name = f"{TEMPORARY}{_machine()}-{os.getpid()}-{os.urandom(8).hex()}"
        temporary = target.parent / name
        try:
            with temporary.open("xb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)


class FsspecBackend:
    """Objects in an object store that has a conditional put."""

    def __init__(self, url: str, protocol: str) -> None:
        import fsspec

        try:
            self._fs, self._prefix = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise StoreError(
                f"storage {protocol}:// needs a package that isn't installed: {error}",
                where="[store] url",
                fix="pip install s3fs",
            ) from error
        self._memory = protocol == "memory"

    def create(self, path: str, data: bytes) -> None:
        """One conditional put."""
        target = self._full(path)
        if not self._memory:
            self._put_conditionally(target, data)
            return
        with _MEMORY_LOCK:
            self._fs.pipe_file(target, data, mode="create")

    def create_from(self, path: str, local: Path) -> None:
        """One conditional put of the file's bytes."""
        self.create(path, local.read_bytes())

    def read(self, path: str, limit: int | None) -> bytes | None:
        """All bytes, or None above the limit."""
        target = self._full(path)
        if limit is None:
            whole: bytes = self._fs.cat_file(target)
            return whole
        data: bytes = self._fs.cat_file(target, start=0, end=limit + 1)
        return None if len(data) > limit else data

    def exists(self, path: str) -> bool:
        """Whether the object exists."""
        return bool(self._fs.isfile(self._full(path)))

    def entries(self, prefix: str) -> tuple[list[str], list[str]]:
        """Names of objects and of common prefixes."""
        files: list[str] = []
        directories: list[str] = []
        for entry in self._fs.ls(self._full(prefix), detail=True):
            name = str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]
            (directories if entry["type"] == "directory" else files).append(name)
        return files, directories

    def _put_conditionally(self, target: str, data: bytes) -> None:
        try:
            self._fs.pipe_file(target, data, mode="create")
        except OSError as error:
            if not isinstance(error, FileExistsError) and "PreconditionFailed" in repr(error):
                raise FileExistsError(errno.EEXIST, "exists", target) from error
            raise

    def _full(self, path: str) -> str:
        return f"{self._prefix.rstrip('/')}/{path}".rstrip("/")


_MEMORY_LOCK = threading.Lock()


@cache
def _machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _alive(pid: str) -> bool:
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _make_directories(directory: Path) -> None:
    """Create a directory and its parents, each made durable in its own parent."""
    missing: list[Path] = []
    while not directory.is_dir():
        missing.append(directory)
        directory = directory.parent
    for each in reversed(missing):
        try:
            each.mkdir(exist_ok=True)
        except FileExistsError as error:  # a file has the name; not to be taken for the object
            raise NotADirectoryError(
                errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(each)
            ) from error
        _sync_directory(each.parent)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
