"""CPU time: of a benchmark with all its jails, and of the rest of the machine."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

CPUACCT = Path("/sys/fs/cgroup/cpuacct")


class CpuMeter:
    """CPU seconds of this process and of everything below it.

    A jail that is killed is nobody's waited-for child, so that only a cgroup counts it; where there
    is none, what is reported is too little, and `complete` says so.
    """

    def __init__(self) -> None:
        self._group = CPUACCT / f"prime-core-benchmark-{os.getpid()}"
        try:
            self._home = CPUACCT / _own_group()
            self._group.mkdir()
            (self._group / "cgroup.procs").write_text(str(os.getpid()))
            self.complete = True
        except OSError:
            self.complete = False

    def seconds(self) -> float:
        """So far."""
        if self.complete:
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        total = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            total += usage.ru_utime + usage.ru_stime
        return total

    def close(self) -> None:
        """Go back to our own group, and remove the one that counted."""
        if not self.complete:
            return
        (self._home / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(50):
            try:
                self._group.rmdir()
                return
            except OSError:  # a killed process may still be leaving
                time.sleep(0.1)


def _own_group() -> str:
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            return path.lstrip("/")
    raise OSError("no cpuacct controller")


def machine_seconds() -> float:
    """CPU seconds that the whole machine has worked."""
    first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
    user, nice, system, _idle, _waiting, hard, soft = (int(word) for word in first[1:8])
    return (user + nice + system + hard + soft) / os.sysconf("SC_CLK_TCK")
