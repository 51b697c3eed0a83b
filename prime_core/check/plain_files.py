"""Reads files that strangers named or left: plain ones alone, with a limit, and never waiting.

Every read of the check's own process goes through it. Invariant: a pipe, a device or a terminal
that stands where a file should can neither keep the check waiting nor fill its memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from prime_core.api import FormatError


def read_plain(path: Path, most: int, *, follow: bool = True, cut: bool = False) -> bytes:
    """The bytes of a plain file.

    Args:
        most: bytes; a larger file is refused.
        follow: read what a link leads to; False refuses a link.
        cut: read the beginning of a larger file instead of refusing it.

    Raises:
        OSError: there is none, or it can't be read.
        FormatError: it's no plain file, or too large.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe would wait for a writer
    descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FormatError(f"{path} is no plain file")
        content = file.read(most + 1)  # not by its size: it may lie, as those of /proc do
    if len(content) > most and not cut:
        raise FormatError(f"{path} has more than {most} bytes")
    return content[:most]
