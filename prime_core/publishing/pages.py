"""Files of an index that are derived from its records and written again when they change.

Only `rebuild` writes through this. Each file is replaced in one move: a reader sees the old one or
the new one, never half of either.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from prime_core.api.errors import StoreError
from prime_core.store.layout import check_path
from prime_core.store.objects import ObjectStore

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


class Pages:
    """The replaceable files below an index's URL."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, path: str) -> bytes | None:
        """A page's bytes; None where there is none."""
        return self._store.get(path) if self._store.exists(path) else None

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a page.

        Raises:
            StoreError: it can't be written.
        """
        check_path(path)
        local = self._store.local_path(path)
        try:
            if local is not None:
                _replace(local, data)
            else:
                self._put_remote(path, data)
        except OSError as error:
            raise StoreError(
                f"page can't be written: {error.strerror or error}",
                where=f"{self._store.url}/{path}",
                fix="check that the index is writable",
            ) from error

    def _put_remote(self, path: str, data: bytes) -> None:
        import fsspec

        system, prefix = fsspec.core.url_to_fs(self._store.url, use_listings_cache=False)
        kind = TYPES.get(Path(path).suffix)
        remote = self._store.url.startswith(("s3://", "s3a://"))
        options = {"ContentType": kind} if remote and kind else {}
        system.pipe_file(f"{prefix.rstrip('/')}/{path}", data, **options)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".tmp-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
