"""One host as the pool sees it: started with its environment open, called, killed with all it had.

Used by the pool's slots. Invariant: after `kill` no process of the host is left.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from prime_core.api.errors import HostError
from prime_core.hosting.channel import Channel, Ended, Failure, ItemReport
from prime_core.hosting.keeper import KILL_PATIENCE_S, descendants
from prime_core.hosting.protocol import PROTOCOL_VERSION
from prime_core.hosting.settings import HostSettings
from prime_core.hosting.variables import host_variables

LOG_LIMIT = 1 << 20  # bytes of a host's log before it turns over
LOG_TAIL = 12  # lines shown when a host can't start
LAST_WORDS_S = 0.5  # how long a host whose pipe ended may take to be dead


class StartError(HostError):
    """A host that couldn't be started. `final` where another try would end the same way."""

    def __init__(self, what: str, *, kind: str, where: str, fix: str | None, final: bool) -> None:
        super().__init__(what, kind=kind, where=where, fix=fix)
        self.final = final


class HostProcess:
    """A running host."""

    def __init__(self, settings: HostSettings, log: Path) -> None:
        """Start the process; the environment is opened by `open`.

        Raises:
            StartError: there is no such interpreter.
        """
        self._settings = settings
        self._log = log
        child_reads, we_write = os.pipe()
        we_read, child_writes = os.pipe()
        self._control, theirs = socket.socketpair()
        inherited = (child_reads, child_writes, theirs.fileno())
        command = [
            str(settings.interpreter),
            *("-P", "-u", "-X", "faulthandler", "-m", "prime_core.hosting.host"),
            *(str(number) for number in (*inherited, os.getpid())),
            *(str(log), str(LOG_LIMIT)),
        ]
        same = settings.interpreter == Path(sys.executable)
        try:
            with open_log(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as output:
                self._keeper = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=inherited,
                    env=host_variables(os.environ, same_interpreter=same),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(we_write)
            os.close(we_read)
            self._control.close()
            raise StartError(
                f"the interpreter of its hosts can't be started: {error.strerror}",
                kind="crash",
                where=settings.where,
                fix="correct python = PATH in the run config, or make one: prime-core env create",
                final=True,
            ) from error
        finally:
            os.close(child_reads)
            os.close(child_writes)
            theirs.close()
        self._control.setblocking(False)
        self._channel = Channel(we_write, we_read)

    async def open(self, full: bool) -> dict[str, Any]:
        """Load the environment; returns its description, with the costly parts if `full`.

        Raises:
            StartError: it can't be loaded, or not in time; the process is killed then.
        """
        found: list[Any] = []

        def report(index: int, result: Any, failure: Failure | None) -> None:
            found.append(result)

        request = {**self._settings.request, "protocol": PROTOCOL_VERSION, "full": full}
        try:
            ended = await self._channel.call(request, 1, self._settings.start_limit_s, report)
        except BaseException:
            await self.kill()
            raise
        if ended.lost is not None or not isinstance(found[0], dict):
            failure = ended.lost or Failure("protocol", "the host described nothing")
            raise self._start_error(await self.lost(failure))
        return found[0]

    async def call(self, name: str, items: Sequence[Any], report: ItemReport) -> Ended:
        """Make one call for each item; a host that is lost is killed, and its end looked up.

        Raises:
            FormatError: the items can't be written.
        """
        request = {"call": name, "items": items}
        ended = await self._channel.call(request, len(items), self._settings.time_limit_s, report)
        if ended.lost is not None:
            return replace(ended, lost=await self.lost(ended.lost))
        return ended

    async def lost(self, failure: Failure) -> Failure:
        """Kill the host; the failure with what its end tells."""
        if failure.kind != "crash":
            await self.kill()
            return failure
        await self._wait(LAST_WORDS_S)
        status = await self.kill()
        return replace(failure, detail=describe_exit(status))

    async def kill(self) -> str:
        """End the host and all its descendants; its exit code as text, "" where it lived."""
        self._channel.close()
        try:
            self._control.shutdown(socket.SHUT_WR)
            if not await self._wait(KILL_PATIENCE_S + 5.0):
                for process in [*descendants(self._keeper.pid), self._keeper.pid]:
                    os.kill(process, signal.SIGKILL)
                await self._wait(KILL_PATIENCE_S)
            return self._control.recv(64).decode("ascii", "replace")
        except OSError:
            return ""  # killed before, or the keeper died without a word
        finally:
            self._control.close()

    async def _wait(self, limit: float) -> bool:
        """Wait for the keeper's end; polled, because watching children belongs to the program."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        pause = 0.0005
        while self._keeper.poll() is None:
            if loop.time() > deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.02)
        return True

    def _start_error(self, failure: Failure) -> StartError:
        tail = log_tail(self._log)
        what = f"the {self._settings.kind} can't start ({failure.kind}): {failure.detail}"
        fix = failure.fix
        final = failure.kind in ("exception", "value", "protocol")
        if "No module named 'prime_core'" in tail or "No module named prime_core" in tail:
            what = "prime-core isn't installed in the interpreter of its hosts"
            fix = "make a fresh one: prime-core env create NAME --requirement PACKAGE"
            final = True
        elif failure.kind == "timeout":
            fix = (
                f"raise hosting.start_limit_s, or load less when the {self._settings.kind} is made"
            )
        elif failure.kind == "memory":
            fix = "raise hosting.memory_mb"
        if not final or "Traceback" in tail:  # a misspelt parameter needs no log
            lines = [f"  | {line}" for line in tail.splitlines()]
            what = "\n".join([what, f"  the end of {self._log}:", *lines])
        where = f"{self._settings.where}{', ' + failure.where if failure.where else ''}"
        return StartError(
            what, kind=failure.kind, where=where, fix=fix or f"read {self._log}", final=final
        )


def describe_exit(status: str) -> str:
    """What a host's exit code says; negative for a signal, as `subprocess` has it."""
    if not status:
        return "the host closed its pipes"
    code = int(status)
    if code >= 0:
        return f"the host exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"the host was killed by {name}{hint}"


def open_log(log: Path, flags: int) -> BinaryIO:
    """Open a host's log; the host may have put a link or a pipe in its place.

    Raises:
        OSError: it has, or the file can't be opened.
    """
    careful = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(log, flags | careful, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "the log is no plain file", str(log))
    return os.fdopen(descriptor, "ab" if flags & os.O_WRONLY else "rb")


def log_tail(log: Path) -> str:
    """The last lines of a host's log."""
    try:
        with open_log(log, os.O_RDONLY) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 256 * LOG_TAIL))
            data = file.read()
    except OSError:
        return ""
    return "\n".join(data.decode("utf-8", "replace").splitlines()[-LOG_TAIL:])
