"""The values and protocols of the sandbox boundary: programs in, executions out, never a pickle.

A sandbox plugin implements `Sandbox`; verifiers get one from `Context.sandbox`. Expected outputs
never cross this boundary: what comes back is what the program says, and is compared outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from prime_core.api.types import Json

IsolationLevel: TypeAlias = Literal["none", "process", "namespaces", "cgroups"]
ProgramKind: TypeAlias = Literal["script", "call"]
ExecutionStatus: TypeAlias = Literal[
    "ok",
    "runtime_error",
    "time_limit",
    "memory_limit",
    "output_limit",
    "compile_error",
    "no_entry_point",
    "bad_result_type",
]

# From weak to strong: nothing; Landlock, seccomp and rlimits on a bare process; namespaces with a
# read-only root; namespaces with memory and processes counted over the whole jail.
LEVELS: tuple[IsolationLevel, ...] = ("none", "process", "namespaces", "cgroups")


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that a host doesn't give a sandbox, why not, and how to get it."""

    name: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a sandbox holds on this host, as a real launch showed it.

    Attributes:
        sandbox: the plugin's name.
        level: the strongest level whose parts all hold; none where nothing can be launched.
        policy_digest: SHA-256 (hex) over everything that decides what a program may do and sees:
            launcher and its arguments, seccomp policy, staged interpreter, the program that runs
            inside. Equal digests on two hosts mean the same jail.
        holds: names of the parts that hold, sorted, e.g. memory_cgroup, network, seccomp.
        missing: what doesn't hold.
    """

    sandbox: str
    level: IsolationLevel
    policy_digest: str
    holds: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()

    def at_least(self, level: IsolationLevel) -> bool:
        """Whether this is as strong as `level`."""
        return LEVELS.index(self.level) >= LEVELS.index(level)

    def evidence(self) -> dict[str, str]:
        """What goes into every score's evidence."""
        return {"sandbox": self.sandbox, "level": self.level, "policy": self.policy_digest}


@dataclass(frozen=True, slots=True)
class Program:
    """One submission.

    Attributes:
        source: the program's text, after `clean_source`.
        kind: script: each input runs the text as `__main__` with bytes on stdin. call: each input
            imports the text as a module named `solution` and calls `entry`.
        entry: for call: `Solution().<entry>` where the module has such a class with that member,
            else the module's attribute `<entry>`.
        prelude: trusted text that runs first, in the same namespace (star imports); line numbers of
            `source` stay its own.
        language: python.
    """

    source: str
    kind: ProgramKind = "script"
    entry: str = ""
    prelude: str = ""
    language: str = "python"

    def __post_init__(self) -> None:
        if (self.kind == "call") != bool(self.entry):
            raise ValueError("a program of kind call names its entry, a script doesn't")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one input may use. CPU time decides, so that a busy machine changes no verdict.

    Attributes:
        cpu_seconds: CPU time of all processes of one input; may be a fraction.
        wall_seconds: backstop for programs that sleep, in seconds in which the program could have
            run: waiting for a processor doesn't count where the host can tell. None: twice the CPU
            limit and two seconds.
        memory_mb: address space of one process above what the interpreter has, MiB; memory of the
            whole jail where cgroups hold.
        processes: processes and threads at once, the program's first one included.
        output_bytes: size of stdout or of an encoded result, and of any file.
        stderr_bytes: kept from the end of stderr.
        open_files: file descriptors of one process.
        stack_mb: stack of the main thread, MiB.
    """

    cpu_seconds: float = 4.0
    wall_seconds: float | None = None
    memory_mb: int = 512
    processes: int = 32
    output_bytes: int = 8 << 20
    stderr_bytes: int = 4096
    open_files: int = 64
    stack_mb: int = 64

    @property
    def wall(self) -> float:
        """The wall backstop in seconds."""
        return 2 * self.cpu_seconds + 2 if self.wall_seconds is None else self.wall_seconds

    def __post_init__(self) -> None:
        numbers = (self.cpu_seconds, self.wall, self.memory_mb, self.processes, self.open_files)
        if min(*numbers, self.output_bytes, self.stack_mb) <= 0 or self.stderr_bytes < 0:
            raise ValueError(f"limits are above zero, not {self}")


@dataclass(frozen=True, slots=True)
class JailInput:
    """One input: `stdin` for a script, `args` and `kwargs` (plain JSON) for a call."""

    stdin: bytes = b""
    args: tuple[Json, ...] = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Execution:
    """What one input led to. Everything in it is the program's word, but for status and usage.

    Attributes:
        status: ok: a script ended with code 0 and within its limits; a call returned a value.
        detail: a short reason: cpu or wall, exit code, signal, a syntax error's line. For people.
        stdout: raw bytes of a script; b"" of a call (what it prints goes to stderr).
        stderr: the end of it.
        result: what a call returned, rebuilt of exactly None, bool, int, float, str, list, tuple
            and dict; meaningless unless status is ok.
        cpu_seconds: of all its processes.
        wall_seconds: from fork to the end of the last process.
        peak_memory: bytes, resident, of its largest process.
        exit_code: None where a signal ended it or nothing ran.
        signal: the number, or None.
    """

    status: ExecutionStatus
    detail: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    result: Any = None
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory: int = 0
    exit_code: int | None = None
    signal: int | None = None


class Jail(Protocol):
    """One program in one jail. A context manager; used by one thread at a time."""

    def run(self, given: JailInput) -> Execution:
        """Run one input in a fresh process; nothing of it is left for the next one.

        Raises:
            SandboxError: the jail failed, not the program.
        """
        ...

    def close(self) -> None:
        """Destroy the jail and all that runs in it."""
        ...

    def __enter__(self) -> Jail:
        """The jail itself."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Makes jails, one a program, from a small pool of warmed ones."""

    def probe(self) -> Isolation:
        """What holds on this host, by a real launch; remembered."""
        ...

    def open(self, program: Program, limits: Limits) -> Jail:
        """A jail with this program in it; one that doesn't compile says so in every execution.

        Raises:
            SandboxError: no jail can be launched; says what is missing and how to get it.
        """
        ...

    def processes(self) -> frozenset[int]:
        """Process ids of the launchers it keeps, which a host doesn't take for leftovers."""
        ...

    def close(self) -> None:
        """Destroy every jail, the warmed ones too."""
        ...


def clean_source(text: str) -> str:
    """The named step before the jail: what changes a program's text, and nothing else does.

    Drops a byte order mark, and turns CRLF and CR into LF, as reading a file in text mode would.
    """
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
