"""Files of a data set on local disk: local ones where they lie, remote ones in the cache.

Called by `load_tasks`; a file with a pinned digest is never used with another one, and a cached
file is found by its digest, whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from prime_core.api.datasets.hub_files import fetch_from_hub
from prime_core.api.datasets.rows import suffix_of
from prime_core.api.errors import DatasetError
from prime_core.api.specs import Context

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that can be read: its path, format and digest (SHA-256, lower-case hex)."""

    url: str
    path: Path
    suffix: str
    sha256: str


def local_file(url: str, revision: str | None, pinned: str | None, context: Context) -> LocalFile:
    """The file behind a URL, with its digest checked.

    A pinned file in the cache needs no network. One that isn't pinned is fetched each time it
    can be, and taken from the cache when offline.

    Raises:
        DatasetError: missing, not reachable, offline and not cached, or of another digest.
    """
    if url.startswith("hub://"):
        path = fetch_from_hub(url, revision or "", context)
        return _checked(url, path, suffix_of(path.name), pinned)
    suffix = suffix_of(url)
    named = local_path(url)
    if named is None:
        return _remote(url, suffix, pinned, context)
    if not named.is_file():
        raise DatasetError("there is no such file", where=str(named), fix=check_path())
    return _checked(url, named, suffix, pinned)


def local_path(url: str) -> Path | None:
    """The path that a URL names on this machine; None for what is fetched from elsewhere."""
    if "://" in url and not url.startswith("file://"):
        return None
    return Path(unquote(urlsplit(url).path) if url.startswith("file://") else url).expanduser()


def check_path() -> str:
    """What to do about a path that leads nowhere."""
    return f"check the path; a relative one starts at {Path.cwd()}"


def _checked(url: str, path: Path, suffix: str, pinned: str | None) -> LocalFile:
    found = _sha256(path)
    if pinned is not None and found != pinned:
        raise _other_digest(url, found, pinned)
    return LocalFile(url, path, suffix, found)


def _other_digest(url: str, found: str, pinned: str) -> DatasetError:
    return DatasetError(
        f"the file's SHA-256 is {found}, the pinned one is {pinned}",
        where=url,
        fix="the data changed: restore the file, or pin the new digest if the change is meant",
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise DatasetError(
            f"the file can't be read: {error}", where=str(path), fix="check its permissions"
        ) from error
    return digest.hexdigest()


def _remote(url: str, suffix: str, pinned: str | None, context: Context) -> LocalFile:
    folder = context.cache_dir / "datasets"
    note = folder / "urls" / f"{hashlib.sha256(url.encode('utf-8')).hexdigest()}.json"
    known = pinned or (_noted(note) if context.offline else None)
    if known is not None:
        path = folder / f"{known}{suffix}"
        # A damaged file is fetched again rather than believed.
        if path.is_file() and _sha256(path) == known:
            return LocalFile(url, path, suffix, known)
    if context.offline:
        raise DatasetError(
            "offline, and the file isn't in the cache",
            where=url,
            fix=f"load it once online with the same cache ({folder}), or name a local file",
        )
    fetched = _fetch(url, folder, suffix, pinned)
    _write_note(note, url, fetched.sha256)
    return fetched


def _noted(note: Path) -> str | None:
    if not note.is_file():
        return None
    digest = json.loads(note.read_text(encoding="utf-8"))["sha256"]
    return str(digest)


def _write_note(note: Path, url: str, sha256: str) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=note.parent, suffix=".part", delete=False, encoding="utf-8"
    ) as stream:
        json.dump({"url": url, "sha256": sha256}, stream)
    Path(stream.name).replace(note)


def _fetch(url: str, folder: Path, suffix: str, pinned: str | None) -> LocalFile:
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as target:
            _copy(url, target)
        found = _sha256(part)
        if pinned is not None and found != pinned:
            raise _other_digest(url, found, pinned)
        path = folder / f"{found}{suffix}"
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return LocalFile(url, path, suffix, found)


def _copy(url: str, target: BinaryIO) -> None:
    import fsspec

    try:
        with fsspec.open(url, "rb") as stream:
            shutil.copyfileobj(_reader(stream), target, CHUNK)
    except (OSError, ValueError, ImportError) as error:
        raise DatasetError(
            f"the file can't be fetched: {type(error).__name__}: {error}",
            where=url,
            fix="check the URL and the network; some protocols need their fsspec package",
        ) from error


def _reader(stream: Any) -> BinaryIO:
    assert hasattr(stream, "read")
    return stream  # type: ignore[no-any-return]
