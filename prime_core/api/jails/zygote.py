"""Inside a jail: forks one fresh child an input, waits, kills and reaps, wipes, reports.

Copied into the staged root and run there as pid 1; the engine never imports it. Invariant: code of
a submission runs in forked children only, which hold no descriptor of the control channel.
"""

from __future__ import annotations

# Builtin and C modules only: each Python module costs a jail's start a millisecond or more.
import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import posix
import resource
import select
import sys
import time

import prime_runner  # type: ignore[import-not-found]  # these lie beside this file
import prime_surroundings  # type: ignore[import-not-found]

TYPE_CHECKING = False  # importing typing would cost 10 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn

NAMES = 9  # descriptors that a message may carry at most
MESSAGE = 1 << 16
TMP = "/tmp"  # noqa: S108 - the jail's own tmpfs, size- and inode-capped
REASON_NONE, REASON_CPU, REASON_STOP = 0, 1, 2
CPUCLOCK_SCHED = 2  # linux/posix-timers.h: a process's CPU clock is (~pid << 3) | 2


def main(pid_one: bool, control: int) -> NoReturn:
    """Serve the channel until the host closes its end.

    Args:
        pid_one: this is pid 1 of a namespace of its own, so that kill(-1) reaches the jail alone.
        control: descriptor of the channel, as the launcher passes it on.
    """
    # Signals with a handler reach even pid 1, so that there must be none: Python's own for SIGINT
    # would let a submission interrupt us.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN if not pid_one else _signal.SIG_DFL)
    channel = _socket.socket(fileno=control)
    settings: dict[str, Any] = {"pid_one": pid_one, "tmp": TMP}
    programs: dict[str, Any] = {}
    channel.send(b"ready %d.%d.%d" % sys.version_info[:3])
    while True:
        message, descriptors = receive(channel)
        if message is None:
            end(settings)
        kind = message["kind"]
        if kind == "configure":
            settings.update(message["settings"])
            settings["tmp_mode"] = posix.stat(settings["tmp"]).st_mode & 0o7777
            prime_runner.prepare(settings)
            channel.send(b"configured")
        elif kind == "load":
            prime_runner.preload(message["modules"])
            reply = run(channel, settings, message, descriptors, programs)
            channel.send(reply)
        elif kind == "run":
            channel.send(run(channel, settings, message, descriptors, programs))
        for descriptor in descriptors:
            posix.close(descriptor)


def receive(channel: _socket.socket) -> tuple[Any, list[int]]:
    """The next message and its descriptors; (None, []) when the host closed its end."""
    data, ancillary, _, _ = channel.recvmsg(MESSAGE, _socket.CMSG_LEN(4 * NAMES))
    if not data:
        return None, []
    descriptors: list[int] = []
    for _, _, packed in ancillary:
        descriptors += [
            int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)
        ]
    return marshal.loads(data), descriptors  # noqa: S302 - the host is trusted, we are not


def run(
    channel: _socket.socket,
    settings: dict[str, Any],
    message: dict[str, Any],
    descriptors: list[int],
    programs: dict[str, Any],
) -> bytes:
    """One child from fork to the death of all it left; the reply to the host."""
    began = time.monotonic()
    child = posix.fork()
    if child == 0:
        prime_runner.become(settings, message, descriptors, programs)
    reason = wait(channel, settings, child, message["cpu_seconds"])
    status, cpu, peak, more = reap(settings, child)
    wall = time.monotonic() - began
    wipe(settings["tmp"], settings["tmp_mode"])
    if message["kind"] == "load" and status == 0:
        size = posix.fstat(descriptors[1]).st_size
        programs["code"] = marshal.loads(posix.pread(descriptors[1], size, 0))  # noqa: S302 - of our own compile()
    numbers = (status, reason, int(cpu * 1e6), int(wall * 1e6), peak, more)
    return b"done " + b" ".join(b"%d" % number for number in numbers)


def wait(channel: _socket.socket, settings: dict[str, Any], child: int, cpu_seconds: float) -> int:
    """Sleep until the child ends, has used its CPU time, or the host says stop."""
    clock = (~child << 3) | CPUCLOCK_SCHED
    watched = posix.pidfd_open(child, 0)
    poller = select.poll()
    poller.register(watched, select.POLLIN)
    poller.register(channel.fileno(), select.POLLIN)
    reason = REASON_NONE
    while True:
        left = cpu_seconds - time.clock_gettime(clock)
        if left <= 0:
            reason = REASON_CPU
            break
        ready = [descriptor for descriptor, _ in poller.poll(int(left * 1000) + 1)]
        if watched in ready:
            break
        if channel.fileno() in ready:
            if not channel.recv(MESSAGE):
                end(settings)
            reason = REASON_STOP
            break
    posix.close(watched)
    return reason


def reap(settings: dict[str, Any], child: int) -> tuple[int, float, int, int]:
    """Kill and collect all but us: the child's status, CPU of all, the largest peak, count."""
    status, cpu, peak, count = 0, 0.0, 0, 0
    while True:
        kill_all(settings)
        try:
            # kill(-1) misses nobody; a walk through /proc may, so that it must not be waited for.
            found, code, usage = posix.wait4(-1, 0 if settings["pid_one"] else posix.WNOHANG)
        except ChildProcessError:
            return status, cpu, peak, count
        if found == 0:
            time.sleep(0.0005)
            continue
        count += 1
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss)
        if found == child:
            status = code


def kill_all(settings: dict[str, Any]) -> None:
    """SIGKILL to all below us; without a pid namespace kill(-1) would reach the host itself."""
    if settings["pid_one"]:
        try:
            posix.kill(-1, _signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        for process in prime_runner.descendants(posix.getpid()):
            try:
                posix.kill(process, _signal.SIGKILL)
            except ProcessLookupError:
                continue


def wipe(folder: str, mode: int) -> None:
    """Empty the jail's writable folder and make it what it was, whatever was done to it.

    Its times can't be chosen: the seccomp policy refuses that.
    """
    posix.chmod(folder, mode)
    if posix.listdir(folder):
        empty(folder)
    for name in posix.listxattr(folder):
        posix.removexattr(folder, name)


def empty(folder: str) -> None:
    """Remove all in a folder, however deep and whatever its modes.

    Folders are flattened, not descended: their entries move up, so that no path gets too long.
    """
    top = posix.open(folder, posix.O_RDONLY | posix.O_DIRECTORY)
    prefix = f".moved-{posix.urandom(8).hex()}"  # nothing may be in the way
    moved = 0
    while names := posix.listdir(folder):
        for name in names:
            try:
                posix.unlink(name, dir_fd=top)
                continue
            except (IsADirectoryError, PermissionError):
                posix.chmod(name, 0o700, dir_fd=top)
            below = posix.open(name, posix.O_RDONLY | posix.O_DIRECTORY, dir_fd=top)
            for entry in posix.listdir(below):
                moved += 1
                if posix.lstat(entry, dir_fd=below).st_mode & 0o170000 == 0o040000:
                    posix.chmod(entry, 0o700, dir_fd=below)  # or it can't be moved
                posix.rename(entry, f"{prefix}-{moved}", src_dir_fd=below, dst_dir_fd=top)
            posix.close(below)
            posix.rmdir(name, dir_fd=top)
    posix.close(top)


def end(settings: dict[str, Any]) -> NoReturn:
    """The host is gone: take everything with us."""
    kill_all(settings)
    posix._exit(0)


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
prime_surroundings.settle()
