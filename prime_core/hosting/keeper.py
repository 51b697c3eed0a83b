"""The keeper of one host: bounds its log, and leaves none of its descendants alive.

Runs in the parent half of `prime_core.hosting.host`. As the subreaper of all that a host starts,
it finds daemons that forked twice and left the session; it ends when the host ends, when the pool
says so, and when the pool's process dies. Imports nothing heavy.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import time
from pathlib import Path

from prime_core.hosting.sandboxing import remove_groups

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
KILL_PATIENCE_S = 10.0  # a process that survives SIGKILL for longer hangs in the kernel


def die_with_parent(number: int, parent: int) -> None:
    """Have the kernel send a signal when the parent dies; exit now if it's dead already."""
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


class BoundedLog:
    """A log file that is moved to `<path>.1` when it's full, so that two limits bound it."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = Path(path)
        self._limit = limit
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o644)
        self._size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        """Append; at most one limit is lost when the file turns over."""
        if self._size + len(data) > self._limit:
            os.close(self._descriptor)
            self._path.replace(f"{self._path}.1")
            self._open()
        os.write(self._descriptor, data)
        self._size += len(data)


def keep(host: int, control: socket.socket, log_read: int, log: BoundedLog) -> int:
    """Wait for the host's end or the pool's word, then kill all descendants.

    The host's wait status goes to the pool as text over `control`, before the clean-up.
    """
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(log_read, False)
    ended = False

    def stop(number: int, frame: object) -> None:
        nonlocal ended
        ended = True

    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGTERM, stop)
    poller = select.poll()
    for descriptor in (control.fileno(), log_read, wake_read):
        poller.register(descriptor, select.POLLIN)
    while not ended:
        status = _reap(host)  # first, because the host may have died before the handler stood
        if status is not None:
            _tell(control, status)
            break
        for descriptor, _ in poller.poll():
            if descriptor == control.fileno():
                ended = True  # the pool closed its end, or its process died
            elif descriptor == log_read:
                if not _copy(log_read, log):
                    poller.unregister(log_read)
            else:
                os.read(wake_read, 512)
    kill_descendants()
    remove_groups(host)
    _copy(log_read, log)
    return 0


def _copy(source: int, log: BoundedLog) -> bool:
    """Move what the pipe holds into the log; False at its end."""
    for _ in range(64):  # a host that prints without end must not keep us from the other channels
        try:
            data = os.read(source, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        log.write(data)
    return True


def _reap(host: int) -> int | None:
    """Collect dead children; the host's wait status if it was among them."""
    found = None
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if child == 0:
            return found
        if child == host:
            found = status


def _tell(control: socket.socket, status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    try:
        control.sendall(str(code).encode())
    except OSError:
        return  # the pool is gone; there is nobody to tell


def kill_descendants() -> None:
    """SIGKILL all descendants and reap them, until none is left.

    Dead parents hand their children to us, so that repeating finds those that were forked while
    we looked.
    """
    deadline = time.monotonic() + KILL_PATIENCE_S
    while time.monotonic() < deadline:
        for process in descendants(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def descendants(ancestor: int) -> list[int]:
    """Process ids of all living descendants, from /proc; zombies are left to their parents."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names only, a hundred of them, at every kill
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                # The name in parentheses may hold spaces and parentheses of its own.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue  # it ended while we looked
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(entry))
    found: list[int] = []
    queue = [ancestor]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found
