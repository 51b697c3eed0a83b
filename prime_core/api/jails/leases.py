"""Leases on staged roots: whoever uses one holds it, and what nobody holds is removed after a day.

Used by `staging`. Invariant: a root is renamed away under an exclusive lock before it is removed,
so that nobody who holds it, or finds it whole and then locks it, loses a file of it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import time
import weakref
from pathlib import Path

TEMPORARY = ".staging-"  # prefix of what is being made or removed
MANIFEST = "manifest.json"  # the file that is locked, and whose time says when it was last taken
STAGED = re.compile(r"python-\d+\.\d+\.\d+-[0-9a-f]{16}")
UNUSED_S = 24 * 3600.0


class Lease:
    """Holds a root until it is closed, or nobody has it any more."""

    def __init__(self, descriptor: int) -> None:
        self._close = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Hold it no longer."""
        self._close()


def take(made: Path) -> Lease | None:
    """Hold a root; None where there is none.

    On a file system without locks nothing is held, and `prune` removes nothing there either.
    """
    try:
        descriptor = os.open(made / MANIFEST, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    lease = Lease(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(descriptor)
    except OSError:
        return lease
    try:
        if os.path.samestat(os.fstat(descriptor), (made / MANIFEST).stat()):
            return lease
    except FileNotFoundError:  # removed between our opening and our lock
        pass
    lease.close()
    return None


def prune(folder: Path, kept: str) -> int:
    """Remove roots and half-made ones that nobody used for a day; how many.

    Args:
        folder: ours, so that nobody else put anything there.
        kept: name of the root that is wanted now.
    """
    oldest = time.time() - UNUSED_S
    count = 0
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_dir() or path.name == kept:
            continue
        if path.name.startswith(TEMPORARY) and path.stat().st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)
            count += 1
        elif STAGED.fullmatch(path.name) and _rename_unused(path, oldest):
            count += 1
    return count


def _rename_unused(made: Path, oldest: float) -> bool:
    try:
        with (made / MANIFEST).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_mtime >= oldest:
                return False
            removed = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=made.parent))
            made.rename(removed / made.name)
    except OSError:  # somebody holds it, or was quicker
        return False
    shutil.rmtree(removed, ignore_errors=True)
    return True
