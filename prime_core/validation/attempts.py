"""Remembers on disk which file is judged, so that one that kills its judge has few turns.

The validator notes each attempt before it begins and removes the note with the verdict. After
`MOST` attempts without a verdict the file has had its turn.
"""

from __future__ import annotations

from pathlib import Path

from prime_core.api.errors import StoreError
from prime_core.store.records import Key

MOST = 5  # an honest file may see its judge killed a few times for other reasons


class Attempts:
    """The notes of one validator, one small file each.

    Args:
        folder: a local directory of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self, key: Key) -> int:
        """Note one more attempt at a file; how many there were before.

        Raises:
            StoreError: the note can't be written.
        """
        before = self._count(self._path(key))
        self._note(key, before + 1)
        return before

    def withdraw(self, key: Key, before: int) -> None:
        """An attempt that nobody died of, and that must be made again, doesn't count.

        Raises:
            StoreError: the note can't be written.
        """
        if before:
            self._note(key, before)
        else:
            self.end(key)

    def _note(self, key: Key, count: int) -> None:
        path = self._path(key)
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_text(f"{count}\n", encoding="ascii")
            temporary.replace(path)
        except OSError as error:
            raise _broken(path, error) from error

    def end(self, key: Key) -> None:
        """Forget a file: it has its verdict, or was left in peace.

        Raises:
            StoreError: the note can't be removed.
        """
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise _broken(self._path(key), error) from error

    def _count(self, path: Path) -> int:
        try:
            return int(path.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return 0
        except OSError as error:
            raise _broken(path, error) from error

    def _path(self, key: Key) -> Path:
        step, node, n = key
        return self._folder / f"{step}-{node}-{n}"


def _broken(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the attempt can't be noted: {error.strerror}",
        where=str(path),
        fix="make the run directory writable",
    )
