"""One running jail as the host holds it: launcher process, channel, cgroup, and how it ends.

Made by the pool, used by sessions. Invariant: after `kill` no process, mount or cgroup of it is
left, whatever state it was in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from prime_core.api.errors import SandboxError
from prime_core.api.jails.cgroups import Cgroup
from prime_core.api.jails.channel import Channel, JailLost
from prime_core.api.jails.launching import Started

READY_LIMIT_S = 60.0  # a start takes 0.03 s; a machine with a load of 50 is still given time
DEATH_LIMIT_S = 20.0  # to be killed and reaped
LOG_LIMIT = 16384


class Zygote:
    """A jail that was started, and may not be ready yet."""

    def __init__(
        self, started: Started, channel: Channel, log: int, cgroup: Cgroup | None, pid_one: bool
    ) -> None:
        self.channel = channel
        self.cgroup = cgroup
        self.process = started.process
        self._folder = started.folder
        self._log = log
        self._below_launcher = pid_one
        self._ready = False
        self.outer_pid = 0  # the zygote's own id outside, once it's ready

    def wait_ready(self) -> None:
        """Wait until it's ready and configured, and in its cgroup.

        Raises:
            JailLost: it ended instead; `log_text` says why.
        """
        if self._ready:
            return
        deadline = time.monotonic() + READY_LIMIT_S
        for word in (b"ready ", b"configured"):
            data = self.channel.receive(deadline - time.monotonic())
            if data is None:
                raise JailLost(f"the jail wasn't ready within {READY_LIMIT_S:g} s")
            if not data.startswith(word):
                raise JailLost("the zygote greets in another language")
        self.outer_pid = self._find_zygote()
        if self.cgroup is not None and not self.cgroup.entered:
            self.cgroup.add(self.outer_pid)
        self._ready = True

    def _find_zygote(self) -> int:
        if not self._below_launcher:
            return self.process.pid
        found = children(self.process.pid)
        if not found:
            raise JailLost("the launcher has no child")
        return found[0]

    def run_delay(self) -> float:
        """Seconds that the running program's threads have waited for a processor, at most.

        0 where it has several processes: those wait for each other, as a fork bomb's do.
        """
        running = descendants(self.outer_pid)
        if len(running) != 1:
            return 0.0
        delays = [0.0]
        for task in Path(f"/proc/{running[0]}/task").glob("*/schedstat"):
            try:
                delays.append(int(task.read_text().split()[1]) / 1e9)
            except (OSError, IndexError, ValueError):
                continue  # it ended, or this kernel doesn't count
        return max(delays)

    def log_text(self) -> str:
        """What the launcher said."""
        return os.pread(self._log, LOG_LIMIT, 0).decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """End everything of this jail and remove its cgroup."""
        self.channel.close()
        if self.process.poll() is None:
            if not self._below_launcher:
                self._end_without_namespace()
            elif not self._ready:
                self._end_half_started()
        self.process.kill()
        try:
            self.process.wait(DEATH_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(
                f"process {self.process.pid} of a jail doesn't die",
                fix="look for what it waits in: /proc/PID/stack",
            ) from error
        finally:
            os.close(self._log)
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            if self.cgroup is not None:
                self.cgroup.remove()

    def _end_half_started(self) -> None:
        """A launcher's child may not have asked yet to die with it: then it would wait for ever."""
        os.kill(self.process.pid, signal.SIGSTOP)  # so that it starts nothing while we look
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for process in descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _end_without_namespace(self) -> None:
        """No kernel ends the descendants for us: the zygote does, when its channel closes."""
        try:
            self.process.wait(DEATH_LIMIT_S)
        except subprocess.TimeoutExpired:
            for process in descendants(self.process.pid):
                os.kill(process, signal.SIGKILL)


def children(process: int) -> list[int]:
    """Process ids of the children; empty where it has ended."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def descendants(process: int) -> list[int]:
    """All below a process."""
    found = children(process)
    for child in found:
        found += children(child)
    return found
