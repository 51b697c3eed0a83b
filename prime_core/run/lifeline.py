"""What every role process does first: die with its supervisor, and be the only one of its kind.

Called by `prime_core.cli.roles`. The lock is the kernel's (flock), so that a killed process never
leaves a stale one, and a restarted role waits for its predecessor's last instant.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import time
from pathlib import Path
from types import TracebackType

from prime_core.api.errors import RunError

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(supervisor: int | None) -> None:
    """Ask the kernel for SIGKILL when the supervising process ends.

    SIGKILL, not SIGTERM: an orphan that takes its time to stop would still write while a resumed
    run starts. Raises RunError where the supervisor is gone already.
    """
    if supervisor is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise RunError(
            f"prctl(PR_SET_PDEATHSIG) failed: {os.strerror(ctypes.get_errno())}",
            fix="start the role without --supervisor",
        )
    # The parent may have died before the call above: then nobody will signal us.
    if os.getppid() != supervisor:
        raise RunError(f"supervisor {supervisor} is gone", fix="start the run with --resume")


class RoleLock:
    """One process per role and run directory."""

    def __init__(self, run_dir: Path, role: str, *, patience_s: float = 10.0) -> None:
        """Args: run_dir, the role's name, and seconds to wait for a predecessor to end."""
        self._path = run_dir / "locks" / f"{role}.lock"
        self._patience_s = patience_s
        self._fd: int | None = None

    def __enter__(self) -> RoleLock:
        """Take the lock; RunError names the process that holds it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunError(
                f"the run directory can't be written: {error.strerror}",
                where=str(self._path),
                fix="make it writable, or choose another with --set run.dir=...",
            ) from error
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    holder = os.read(fd, 64).decode(errors="replace").strip() or "unknown"
                    os.close(fd)
                    raise RunError(
                        f"another process (pid {holder}) holds this role",
                        where=str(self._path),
                        fix=f"stop process {holder}, or use another run directory",
                    ) from error
                time.sleep(0.05)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
