"""The first thing that runs in a jailed child: closes the doors, then becomes the real interpreter.

Started by path as `python -I -S jail.py SETTINGS ARGUMENTS...`; imports the standard library only.
Invariant: what it becomes has the isolation that the settings name, or never runs (exit code 97).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

FAILED = 97  # exit code of a jail that couldn't be closed

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
# linux/mount.h
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MOUNT_ATTR_RDONLY = 1
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442  # the same on every architecture
# linux/prctl.h
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
KERNEL_SWITCHES = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
INSIDE_ID = 1000  # not root inside, so that exec drops every capability
HOST_MODULE = "prime_core.hosting.host"
WATCH_S = 0.05  # between two looks at how many processes there are
DISK_FLOOR = 256 << 20  # bytes that stay free beside the scratch folder
PER_NAMESPACE_PID_MAX = (6, 14)  # from this Linux on, kernel.pid_max belongs to the namespace

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> NoReturn:
    """Isolate, and exec the interpreter with the arguments behind the settings' path."""
    settings = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    command = [settings["python"], *arguments[1:]]
    level, parent = settings["level"], os.getppid()
    try:
        if level == "namespaces":
            _unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC)
            child = os.fork()
            if child:
                _wait(child, parent, settings)
            _die_with_parent()
            _mounts(settings)
            command = _with_parent(command, 0)  # the parent stands outside of our process ids
        elif level == "network":
            _unshare(CLONE_NEWUSER | CLONE_NEWNET)
        if level != "limits":
            _loopback_up()
        _limits(settings["limits"])
        _call(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    except OSError as error:
        sys.stderr.write(f"prime-core check: jail of level {level} failed: {error}\n")
        os._exit(FAILED)
    variables = {**os.environ, **settings["variables"]}
    os.execve(command[0], command, variables)  # noqa: S606 - the interpreter that we were given


def _call(code: int, what: str) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _unshare(flags: int) -> None:
    user, group = os.getuid(), os.getgid()
    _call(_libc.unshare(flags), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INSIDE_ID} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{INSIDE_ID} {group} 1")


def _wait(child: int, parent: int, settings: dict[str, Any]) -> NoReturn:
    """Outside: watch what is inside, hand signals in and the exit status out."""

    def forward(number: int, frame: object) -> None:
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, forward)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    ended = 0
    while not ended:
        signal.sigtimedwait([signal.SIGCHLD], WATCH_S)
        why = "the check has ended" if os.getppid() != parent else _trespass(settings)
        if why:
            os.write(2, f"prime-core check: killed: {why}\n".encode())
            os.kill(child, signal.SIGKILL)  # with it, all others of its namespace
        ended, status = os.waitpid(child, 0 if why else os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _trespass(settings: dict[str, Any]) -> str:
    """Why what is inside must end; "" where nothing is wrong."""
    if _processes_inside() > settings["processes"]:
        return f"it runs more than {settings['processes']} processes"
    found = os.statvfs(settings["scratch"])
    return "the disk is nearly full" if found.f_bavail * found.f_frsize < DISK_FLOOR else ""


def _processes_inside() -> int:
    """Processes in the jail; 0 until its list of them is mounted, which this process sees too."""
    try:
        os.readlink("/proc/self")  # noqa: PTH115
    except FileNotFoundError:  # a list that we aren't in is the jail's
        return sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208
    return 0


def _die_with_parent() -> None:
    _call(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "pdeathsig")


def _with_parent(command: list[str], parent: int) -> list[str]:
    """The command of an environment host names its parent's process id; inside it is another."""
    if HOST_MODULE not in command:
        return command
    at = command.index(HOST_MODULE) + 4
    return [*command[:at], str(parent), *command[at + 1 :]]


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _call(
        _libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()),
        f"mount {target}",
    )


def _set_mount(path: str, attributes: tuple[int, int], flags: int) -> None:
    """mount_setattr(2) with (set, clear)."""
    wanted = struct.pack("QQQQ", *attributes, 0, 0)
    code = _libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, wanted, len(wanted))
    _call(code, f"mount_setattr {path}")


def _mounts(settings: dict[str, Any]) -> None:
    """Everything read-only but two folders; a process list of our own; secrets covered."""
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    for folder in settings["writable"]:
        _mount(folder, folder, "", MS_BIND)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    _bound_processes(2 * settings["processes"])
    _devices(settings["devices"])
    # Users of nested namespaces write their id maps here; the machine's own switches stay shut.
    for switches in KERNEL_SWITCHES:
        if Path(switches).exists():
            _mount(switches, switches, "", MS_BIND)
    for folder in settings["hidden"]:
        _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k")
    for file in settings["hidden_files"]:
        _mount("/dev/null", file, "", MS_BIND)
    _set_mount("/", (MOUNT_ATTR_RDONLY, 0), AT_RECURSIVE)
    for folder in settings["writable"]:
        _set_mount(folder, (0, MOUNT_ATTR_RDONLY), 0)
    _set_mount("/proc", (0, MOUNT_ATTR_RDONLY), 0)
    _set_mount("/dev", (0, MOUNT_ATTR_RDONLY), AT_RECURSIVE)
    os.chdir(settings["scratch"])


def _bound_processes(most: int) -> None:
    """No more process ids than this: RLIMIT_NPROC doesn't bind children of a host's root."""
    release = os.uname().release.split("-")[0].split(".")
    numbers = tuple(int(part) for part in release[:2] if part.isdigit())
    if numbers >= PER_NAMESPACE_PID_MAX:  # before it, this would be the whole machine's
        with contextlib.suppress(OSError):  # the watch outside holds without it, only later
            Path("/proc/sys/kernel/pid_max").write_text(str(max(most, 400)))


def _devices(folder: str) -> None:
    """A /dev of our own: a read-only mount doesn't keep a disk's node from being written to."""
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID, "size=64m,mode=755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        if Path(f"/dev/{name}").exists():
            Path(f"{folder}/{name}").touch()
            _mount(f"/dev/{name}", f"{folder}/{name}", "", MS_BIND)
    Path(f"{folder}/shm").mkdir(mode=0o1777)
    for name, number in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        Path(f"{folder}/{name}").symlink_to(f"/proc/self/fd{number}")
    _mount(folder, "/dev", "", MS_BIND | MS_REC)


def _loopback_up() -> None:
    """127.0.0.1 works inside, and leads nowhere else."""
    request = struct.pack("16sh", b"lo", 1)  # IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe.fileno(), 0x8914, request + bytes(16))  # SIOCSIFFLAGS


def _limits(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        held = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (held, held))


if __name__ == "__main__":
    main(sys.argv[1:])
