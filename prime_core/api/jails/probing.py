"""What a launched jail really holds: seen by a small program inside, and in /proc outside.

Called once per sandbox object, and by `prime-core doctor sandbox`. Invariant: a part counts as held
only where it was seen to hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_core.api.jails.cgroups import CgroupPlace
from prime_core.api.jails.launching import Launcher
from prime_core.api.jails.session import JailSession
from prime_core.api.jails.zygotes import Zygote
from prime_core.api.sandboxing import (
    LEVELS,
    IsolationLevel,
    JailInput,
    Limits,
    Missing,
    Program,
)

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
PROCESSES = 6  # limit that the probe runs into

# Each line it prints is the name of a part that holds.
INSIDE = f"""
import ctypes, errno, os, resource, socket, sys

libc = ctypes.CDLL(None)

def refused(action, *numbers):
    try:
        action()
    except OSError as error:
        return error.errno in numbers
    return False

def say(name, holds):
    if holds:
        print(name, flush=True)

say("pid_namespace", os.getppid() == 1)
say("no_proc", refused(lambda: os.listdir("/proc"), errno.ENOENT, errno.EACCES, errno.EPERM))
say("read_only_root", refused(lambda: open(os.__file__, "a"), errno.EROFS, errno.EACCES))
say("host_files_hidden", refused(lambda: open("/etc/passwd"), errno.ENOENT, errno.EACCES))
say("no_sockets", refused(socket.socket, errno.EPERM))
say("not_root", os.getuid() != 0 and refused(lambda: os.setuid(0), errno.EPERM, errno.EINVAL))
say("seccomp", refused(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5), errno.EPERM))
with open("mine", "w") as file:
    file.write("x")
found = os.statvfs(".")
say("tmp_capped", found.f_blocks * found.f_frsize <= 1 << 30)
say("tmp_files_capped", 0 < found.f_files <= 1 << 16)
say("no_new_privileges", libc.prctl(39, 0, 0, 0, 0) == 1)  # PR_GET_NO_NEW_PRIVS
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
say("no_capabilities", libc.capget(header, data) == 0 and not any(data))
say(
    "signals_contained",
    os.getppid() == 1 or refused(lambda: os.kill(os.getppid(), 0), errno.EPERM),
)
say("nice_level", os.getpriority(os.PRIO_PROCESS, 0) == int(sys.stdin.readline()))
say("no_core_files", resource.getrlimit(resource.RLIMIT_CORE) == (0, 0))
say("hash_seed", os.environ.get("PYTHONHASHSEED") == "0" and not sys.flags.ignore_environment)
made = 0
try:
    while made < 4 * {PROCESSES}:
        if os.fork() == 0:
            os.read(reading, 1) if (reading := os.pipe()[0]) else None
            os._exit(0)
        made += 1
except OSError:
    say("process_limit", made <= {PROCESSES})
"""

# What has to hold for each level; a level needs those of the levels below it too.
NEEDED: Mapping[IsolationLevel, frozenset[str]] = {
    "process": frozenset(
        {"read_only_root", "host_files_hidden", "no_sockets", "not_root", "seccomp"}
        | {"no_new_privileges", "no_capabilities", "nice_level", "no_core_files", "hash_seed"}
        | {"no_proc", "signals_contained"}
    ),
    "namespaces": frozenset(
        {"pid_namespace", "tmp_capped", "process_limit"}
        | {f"{name}_namespace" for name in NAMESPACES}
    ),
    "cgroups": frozenset({"memory_cgroup"}),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What `examine` saw."""

    level: IsolationLevel
    holds: tuple[str, ...]
    missing: tuple[Missing, ...]


def examine(zygote: Zygote, launcher: Launcher, place: CgroupPlace | Missing) -> Found:
    """Look at a ready jail. It's used up afterwards."""
    holds = set(_outside(zygote))
    limits = Limits(cpu_seconds=5.0, wall_seconds=10.0, memory_mb=128, processes=PROCESSES)
    session = JailSession(Program(INSIDE), limits, lambda: zygote, lambda _: None)
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    seen = session.run(JailInput(f"{nice}\n".encode()))
    holds |= set(seen.stdout.decode("ascii", "replace").split())
    if isinstance(place, CgroupPlace) and zygote.cgroup is not None:
        holds.add("memory_cgroup")
    missing = [] if isinstance(place, CgroupPlace) else [place]
    level: IsolationLevel = "none"
    for each in LEVELS[1 : LEVELS.index(launcher.level) + 1]:
        lacking = sorted(NEEDED[each] - holds)
        if lacking:
            missing += [_lacking(name, seen.status) for name in lacking if name != "memory_cgroup"]
            break
        level = each
    return Found(level, tuple(sorted(holds)), tuple(missing))


def _lacking(name: str, status: str) -> Missing:
    return Missing(
        name,
        "a launched jail doesn't show it"
        + ("" if status == "ok" else f" (the probe ended with {status})"),
        "see docs/how-to/sandbox-host-setup.md",
    )


def _outside(zygote: Zygote) -> list[str]:
    """Parts that /proc of the host shows."""
    found: list[str] = []
    for name in NAMESPACES:
        try:
            theirs = Path(f"/proc/{zygote.outer_pid}/ns/{name}").readlink()
            ours = Path(f"/proc/self/ns/{name}").readlink()
        except OSError:
            continue
        if theirs != ours:
            found.append(f"{name}_namespace")
    return found
