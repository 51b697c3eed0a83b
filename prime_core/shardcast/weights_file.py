"""The file of one version's bytes: of full size from the start, its blocks as shards come.

`incoming` holds one for each version that it reads or writes.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path


def free_bytes(file: int) -> int:
    """What an ordinary user may still write to a file's disk."""
    found = os.fstatvfs(file)
    return found.f_bavail * found.f_frsize


class WeightsFile:
    """An open file that is closed when nobody holds it any more, in whatever thread that is."""

    def __init__(self, path: Path, flags: int) -> None:
        self.number = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        # The kernel lets one thread at a time write to a file; the others would spin.
        self.writing = threading.Lock()

    def extend(self, size: int) -> None:
        """Give it its full size, where the disk has the room; OSError(ENOSPC) where it hasn't.

        The blocks come with each shard: all at once takes a second for some file systems, which
        everybody further down the tree would wait for.
        """
        if size - os.fstat(self.number).st_blocks * 512 > free_bytes(self.number):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(self.number, size)

    def reserve(self, offset: int, size: int) -> None:
        """Have the blocks of a shard before it comes; OSError(ENOSPC) where there are none."""
        try:
            with self.writing:
                os.posix_fallocate(self.number, offset, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise

    def __del__(self) -> None:
        if number := getattr(self, "number", None):
            os.close(number)
