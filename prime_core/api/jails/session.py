"""One program in one jail: sends inputs, watches the wall, turns what came back into executions.

Made by `JailedSandbox.open`. Invariant: a status blames the program only for what it did; a jail
that is lost without a reason is replaced and the input tried again, once.
"""

from __future__ import annotations

import marshal
import os
import signal
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from prime_core.api.errors import FormatError, SandboxError
from prime_core.api.jails.channel import Files, JailLost, Reply, read_reply
from prime_core.api.jails.modules import foreign_modules, modules_of, names_streams
from prime_core.api.jails.values import read_result
from prime_core.api.jails.zygotes import Zygote
from prime_core.api.sandboxing import Execution, JailInput, Limits, Program

# Exit codes as in `runner.py`.
NO_ENTRY_POINT, BAD_RESULT_TYPE, OUT_OF_MEMORY, NOT_COMPILED, TOO_LARGE = 241, 242, 243, 244, 245
NO_MODULE = 246
STOPPED_LIMIT_S = 30.0  # from our stop to the zygote's reply
# A program that has waited for a processor for longer than this many walls is given up.
STARVATION = 20
LOST = "the jail died of this input"


class JailSession:
    """A program, its limits, and the jail that it's in at the moment."""

    def __init__(
        self,
        program: Program,
        limits: Limits,
        take: Callable[[], Zygote],
        give_up: Callable[[Zygote], None],
    ) -> None:
        self._program = program
        self._limits = limits
        self._take = take
        self._give_up = give_up
        self._zygote: Zygote | None = None
        self._kills = 0
        self._failed = self._load()

    def __enter__(self) -> JailSession:
        """The jail itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Destroy the jail and all that runs in it."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            self._give_up(zygote)

    def run(self, given: JailInput) -> Execution:
        """Run one input in a fresh process; see `prime_core.api.Jail`."""
        if self._failed is not None:
            return self._failed
        program = self._program
        if program.kind == "script":
            data, mode = given.stdin, "script"
        else:
            data, mode = marshal.dumps((tuple(given.args), dict(given.kwargs))), "call"
        for last in (False, True):
            failed = self._load() if self._zygote is None else None
            if failed is not None:
                return failed
            message = {
                "kind": "run",
                "mode": mode,
                "entry": program.entry,
                "named_streams": names_streams(program.source),
            }
            execution = self._exchange(message, data, last)
            if execution is not None:
                return execution
        raise AssertionError("the second try always answers")

    def _load(self) -> Execution | None:
        """Take a jail and compile the program in it; what happened where it doesn't compile."""
        program = self._program
        self._zygote = self._take()
        cgroup = self._zygote.cgroup
        if cgroup is not None:
            cgroup.limit(self._limits.memory_mb, self._limits.processes)
        self._kills = 0
        data = marshal.dumps((program.prelude, program.source))
        modules = modules_of(program.prelude + "\n" + program.source)
        message = {"kind": "load", "mode": "compile", "modules": modules}
        execution = self._exchange(message, data, last=True)
        assert execution is not None
        if execution.status == "ok":
            return None
        self.close()
        return execution

    def _exchange(self, message: Mapping[str, Any], data: bytes, last: bool) -> Execution | None:
        """Send, wait, judge; None where the jail was lost and another try is due."""
        assert self._zygote is not None
        files = Files(data)
        try:
            self._zygote.channel.send({**message, **self._numbers()}, files.all)
            reply = self._wait(self._zygote)
            return self._judge(message["mode"], reply, files)
        except (JailLost, FormatError):
            killed = self._out_of_memory()
            self.close()
            if killed:
                return Execution("memory_limit", "the jail's memory ran out")
            if message["mode"] == "compile":
                return Execution("compile_error", "the compiler died of it")
            return Execution("runtime_error", LOST) if last else None
        finally:
            files.close()

    def _numbers(self) -> dict[str, Any]:
        limits = self._limits
        return {
            "cpu_seconds": limits.cpu_seconds,
            "memory_mb": limits.memory_mb,
            "stack_mb": limits.stack_mb,
            "output_bytes": limits.output_bytes,
            "open_files": limits.open_files,
            "processes": limits.processes,
        }

    def _wait(self, zygote: Zygote) -> Reply:
        """The reply; says stop when the wall is reached in time that the program could have had."""
        wall = self._limits.wall
        began = time.monotonic()
        left = wall
        while (data := zygote.channel.receive(left)) is None:
            elapsed = time.monotonic() - began
            left = wall - (elapsed - zygote.run_delay())
            if left <= 0 or elapsed > STARVATION * wall:
                zygote.channel.send({"kind": "stop"})
                data = zygote.channel.receive(STOPPED_LIMIT_S)
                if data is None:
                    self.close()
                    raise SandboxError(
                        f"a jail didn't stop within {STOPPED_LIMIT_S:g} s",
                        fix="look at the machine's load and disks; this is no verdict",
                    )
                break
            left = max(left, 0.05)
        return read_reply(data)

    def _out_of_memory(self) -> bool:
        """Whether the kernel killed in this jail since we last looked."""
        cgroup = self._zygote.cgroup if self._zygote is not None else None
        if cgroup is None:
            return False
        before, self._kills = self._kills, cgroup.kills()
        return self._kills > before

    def _judge(self, mode: str, reply: Reply, files: Files) -> Execution:
        limits = self._limits
        code = os.WEXITSTATUS(reply.status) if os.WIFEXITED(reply.status) else None
        number = os.WTERMSIG(reply.status) if os.WIFSIGNALED(reply.status) else None
        no_module, code = code == NO_MODULE, 1 if code == NO_MODULE else code
        found: dict[str, Any] = {
            "stderr": files.read_errors(limits.stderr_bytes),
            "cpu_seconds": reply.cpu_seconds,
            "wall_seconds": reply.wall_seconds,
            "peak_memory": reply.peak_memory,
            "exit_code": code,
            "signal": number,
        }
        if mode == "script":
            found["stdout"] = files.read_output(limits.output_bytes)
        killed = self._out_of_memory() and (code != 0 or number is not None)
        over = self._over(reply, files, code, number, killed)
        if over is not None:
            return Execution(*over, **found)
        if mode == "compile" and code != 0:
            said = found["stderr"].decode("utf-8", "replace").strip().splitlines()
            return Execution("compile_error", said[-1] if said else "", **found)
        if no_module:
            return Execution("runtime_error", self._no_module(), **found)
        if code != 0:
            return Execution(*_failure(mode, code, number), **found)
        if mode == "call":
            try:
                found["result"] = read_result(files.read_output(limits.output_bytes))
            except FormatError as error:
                if not files.sizes()[0]:
                    return Execution("runtime_error", "it ended without a result", **found)
                return Execution("bad_result_type", error.what, **found)
        return Execution("ok", **found)

    def _no_module(self) -> str:
        """Only names that stand in the program's text: what it says at run time may be a secret."""
        names = foreign_modules(self._program.source)[:3]
        return f"no such module in the jail: {', '.join(names)}".removesuffix(": ")

    def _over(
        self, reply: Reply, files: Files, code: int | None, number: int | None, killed: bool
    ) -> tuple[Any, str] | None:
        """The limit that was exceeded, with a word about it."""
        if reply.reason == 1 or number == signal.SIGXCPU:
            return "time_limit", "cpu"
        if reply.cpu_seconds > self._limits.cpu_seconds:
            return "time_limit", "cpu"
        if reply.reason == 2:
            return "time_limit", "wall"
        if killed or code == OUT_OF_MEMORY:
            return "memory_limit", "memory"
        if max(files.sizes()) >= self._limits.output_bytes or code == TOO_LARGE:
            return "output_limit", f"{self._limits.output_bytes} bytes"
        return None


def _failure(mode: str, code: int | None, number: int | None) -> tuple[Any, str]:
    if number is not None:
        try:
            return "runtime_error", f"signal {signal.Signals(number).name}"
        except ValueError:
            return "runtime_error", f"signal {number}"
    if mode == "call" and code == NO_ENTRY_POINT:
        return "no_entry_point", "no such function"
    if mode == "call" and code == BAD_RESULT_TYPE:
        return "bad_result_type", "the result isn't plain"
    return "runtime_error", f"exit code {code}"
