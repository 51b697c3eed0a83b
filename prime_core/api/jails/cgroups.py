"""Memory and process limits over a whole jail, where the host has cgroups that we may write.

Version 1 and 2, found by trying. Every jail's group lies under `prime-core-<pid>`, so that what a
killed process left can be told from what is in use, and is removed by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prime_core.api.errors import SandboxError
from prime_core.api.sandboxing import Missing

PREFIX = "prime-core-"
NUMBERS = itertools.count()  # of the groups of this process
REMOVAL_PATIENCE_S = 2.0  # a group is busy for some milliseconds after its last process died
OVERHEAD_MB = 64  # the zygote, and page tables that aren't the program's


@dataclass(frozen=True, slots=True)
class CgroupPlace:
    """Where groups can be made.

    Attributes:
        version: 1 or 2.
        parents: our folders `prime-core-<pid>`: memory and pids of version 1, one of version 2.
    """

    version: int
    parents: tuple[Path, ...]

    def make(self) -> Cgroup:
        """A group for one jail.

        Raises:
            OSError: it can't be made.
        """
        number = str(next(NUMBERS))
        for parent in self.parents:
            parent.mkdir(exist_ok=True)
            if self.version == 2:
                (parent / "cgroup.subtree_control").write_text("+memory +pids")
            (parent / number).mkdir()
        return Cgroup(self.version, tuple(parent / number for parent in self.parents))

    def remove(self) -> None:
        """Remove our own folders, unless another sandbox of this process has groups there."""
        for parent in self.parents:
            with contextlib.suppress(OSError):
                parent.rmdir()


class Cgroup:
    """The group of one jail."""

    def __init__(self, version: int, folders: tuple[Path, ...]) -> None:
        self._version = version
        self._folders = folders
        self._memory, self._pids = folders[0], folders[-1]
        self.can_be_entered = version == 1  # version 2 moves whole processes only
        self.entered = False

    def enter(self) -> None:
        """Move the calling thread, so that what it starts is born in the group.

        A thread that moves itself is moved at once. To move another process the kernel stops every
        fork of the machine until a grace period is over, which takes 10 ms and more.

        Raises:
            SandboxError: the kernel refuses.
        """
        self._move("tasks", "0")
        self.entered = True

    def add(self, process: int) -> None:
        """Move a process, and with it all that it will fork, into the group.

        Raises:
            SandboxError: the kernel refuses.
        """
        self._move("cgroup.procs", str(process))

    def _move(self, file: str, what: str) -> None:
        for folder in self._folders:
            try:
                (folder / file).write_text(what)
            except OSError as error:
                raise SandboxError(
                    f"a jail can't be put into its cgroup: {folder / file}: {error.strerror}",
                    fix="run `prime-core doctor sandbox`",
                ) from error

    def limit(self, memory_mb: int, processes: int) -> None:
        """Set the limits of the whole jail."""
        size = str((memory_mb + OVERHEAD_MB) << 20)
        if self._version == 1:
            limit = self._memory / "memory.limit_in_bytes"
            both = self._memory / "memory.memsw.limit_in_bytes"
            if both.exists():  # where swap is counted; it may never be below the other
                both.write_text("-1")
            limit.write_text(size)
            if both.exists():
                both.write_text(size)
        else:
            (self._memory / "memory.max").write_text(size)
            swap = self._memory / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
        (self._pids / "pids.max").write_text(str(processes + 2))  # and zygote and launcher

    def kills(self) -> int:
        """How often the kernel killed for want of memory in this group."""
        name = "memory.oom_control" if self._version == 1 else "memory.events"
        for line in (self._memory / name).read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Remove the group, when its last process is gone."""
        for folder in self._folders:
            _remove(folder)


def _remove(folder: Path, patience_s: float = REMOVAL_PATIENCE_S) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            # Only a busy group may be free in a moment; one that isn't ours to remove never is.
            if error.errno != errno.EBUSY or time.monotonic() >= deadline:
                return False
            time.sleep(0.002)
        else:
            return True


def _remove_tree(parent: Path) -> bool:
    """Remove what a dead process left, without waiting: whoever starts next tries again."""
    if not parent.is_dir():
        return False
    for folder in parent.iterdir():
        if folder.is_dir():
            _remove(folder, 0.0)
    return _remove(parent, 0.0)


def find_place() -> CgroupPlace | Missing:
    """A place where this process may limit memory and processes, or why there is none."""
    refused: list[str] = []
    for version, bases in _candidates():
        for base in bases:
            sweep(base)
        parents = tuple(base / f"{PREFIX}{os.getpid()}" for base in bases)
        place = CgroupPlace(version, parents)
        try:
            probe = place.make()
            try:
                probe.limit(64, 8)
            finally:
                probe.remove()
        except OSError as error:
            refused.append(f"version {version}: {error.filename}: {error.strerror}")
            place.remove()
            continue
        return place
    return Missing(
        "memory_cgroup",
        "; ".join(refused) or "no cgroup file system with memory and pids is mounted",
        "run as root, or with a delegated group: systemd-run --user --scope -p Delegate=yes; in a "
        "container give it a writable /sys/fs/cgroup",
    )


def sweep(base: Path) -> int:
    """Remove groups whose process is dead, those that can be; returns how many."""
    if not base.is_dir():
        return 0
    count = 0
    for folder in base.glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX)
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            count += _remove_tree(folder)
    return count


def _candidates() -> Iterator[tuple[int, tuple[Path, ...]]]:
    """Places by version: our own group first, then the hierarchy's root."""
    mounts = _mounts()
    own = _own_groups()
    if "memory" in mounts and "pids" in mounts:
        for below in dict.fromkeys([(own.get("memory", "/"), own.get("pids", "/")), ("/", "/")]):
            bases = tuple(
                mounts[name] / path.lstrip("/")
                for name, path in zip(("memory", "pids"), below, strict=True)
            )
            if all(base.is_dir() for base in bases):
                yield 1, bases
    if "2" in mounts:
        for path in dict.fromkeys([str(Path(own.get("2", "/")).parent), own.get("2", "/"), "/"]):
            base = mounts["2"] / path.lstrip("/")
            controllers = base / "cgroup.controllers"
            # A mount of version 2 beside version 1 has no memory controller to give.
            if controllers.is_file() and "memory" in controllers.read_text().split():
                yield 2, (base,)


def _mounts() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found["2"] = Path(place)
        elif kind == "cgroup":
            for name in {"memory", "pids"} & set(options.split(",")):
                found[name] = Path(place)
    return found


def _own_groups() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        for name in names.split(",") if names else ["2" if number == "0" else ""]:
            found[name] = path
    return found
