"""Whose a directory of versions is: of one process at a time, and of one signer and run.

Relays and clients hold theirs while they work (`held`), and `Shelf` looks it through before it
takes anything in (`versions`). What no relay or client made is refused, and so never removed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.signing import read_signed
from prime_core.store import layout
from prime_core.store.objects import MESSAGE_LIMIT

logger = logging.getLogger(__name__)

LOCK = ".lock"
PATIENCE_S = 3.0  # for the last instant of a process that was killed
_LOOK_S = 0.05

# A version's files here; names that start with a dot are temporary, of the file system too.
_MADE = re.compile(r"header\.json|shard-\d{5,6}\.json|seal\.json|weights\.safetensors|\..*")
_SEAL = "seal.json"  # goes first: a version without it is none for who reads the directory
_OF_A_RUN = (layout.RUN, layout.LOCK, layout.KEYS, layout.STEPS, layout.TASKS, layout.OUTCOMES)
_ELSEWHERE = "choose another --dir, an empty one"


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Keep every other process out of a directory, which is made where it isn't there.

    Raises:
        StoreError: another process has it, it holds a run, or it can't be written.
    """
    _refuse_run(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(root / LOCK, flags, 0o644)
    except OSError as error:
        raise StoreError(
            f"the directory can't be used: {error.strerror}", where=str(root), fix=_ELSEWHERE
        ) from error
    try:
        _lock(lock, root)
        yield
    finally:
        os.close(lock)


def _lock(lock: int, root: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                pid = os.pread(lock, 20, 0).decode(errors="replace") or "unknown"
                raise StoreError(
                    f"another process (pid {pid}) uses the directory",
                    where=str(root),
                    fix="end it first, or choose another --dir",
                ) from error
            time.sleep(_LOOK_S)
        except OSError as error:  # a file system without locks
            logger.warning("%s can't be locked: %s; use it with one process", root, error.strerror)
            return
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def versions(root: Path, signer: str, run_id: str) -> dict[int, bytes]:
    """The versions that lie in a directory, each with its header's bytes, b"" where it has none.

    Raises:
        StoreError: one that no relay or client of this signer and run has put there.
    """
    _refuse_run(root)
    found: dict[int, bytes] = {}
    try:
        entries = sorted((root / layout.POLICIES).iterdir())
    except FileNotFoundError:
        return found
    for directory in entries:
        version = layout.parse_numbered(directory.name)
        if version is None:
            continue
        if directory.is_symlink() or not directory.is_dir():
            raise _foreign("it's no directory of a relay's or client's own", directory)
        for each in sorted(directory.iterdir()):
            if not _MADE.fullmatch(each.name):
                raise _foreign(f"no relay or client made its {each.name!r}", directory)
        found[version] = _header(directory)
        _refuse_others(found[version], signer, run_id, directory)
    return found


def remove(directory: Path) -> None:
    """Remove the files of a version that a relay or client makes, and the directory if it's empty.

    What can't be removed stays; `versions` tells of it at the next start.
    """
    with suppress(OSError):
        entries = sorted(directory.iterdir(), key=lambda each: each.name != _SEAL)
        for each in entries:
            if _MADE.fullmatch(each.name):
                each.unlink(missing_ok=True)
        directory.rmdir()


def _header(directory: Path) -> bytes:
    try:
        file = os.open(directory / "header.json", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    with os.fdopen(file, "rb") as opened:
        return opened.read(MESSAGE_LIMIT)


def _refuse_others(header: bytes, signer: str, run_id: str, directory: Path) -> None:
    try:
        signed = read_signed(header, None)
    except (FormatError, IntegrityError):
        return  # damaged, or none yet
    if signed.signer != signer:
        raise _foreign(f"it's of another signer, {signed.signer}", directory)
    run = signed.payload.get("run_id")
    if run != run_id:
        raise _foreign(f"it's of another run, {str(run)[:80]!r}", directory)


def _refuse_run(root: Path) -> None:
    for name in _OF_A_RUN:
        if (root / name).exists():
            raise StoreError(
                f"the directory holds a run ({name}), whose versions nobody may remove",
                where=str(root),
                fix=_ELSEWHERE,
            )


def _foreign(what: str, directory: Path) -> StoreError:
    return StoreError(
        f"the version isn't taken in, and nothing is removed: {what}",
        where=str(directory),
        fix=f"give the --signer and --run-id that it's of, or {_ELSEWHERE}",
    )
