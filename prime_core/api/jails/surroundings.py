"""What a program finds around it besides the language: streams, names of `site`, threads, cores.

Lies in the staged root as `prime_surroundings`; used by zygote and runner. Invariant: a program
that runs in a plain interpreter finds here what it would find there, the same on every host.
"""

from __future__ import annotations

import builtins
import posix
import sys

TYPE_CHECKING = False  # importing typing would cost 10 ms
if TYPE_CHECKING:
    from typing import Any

PROCESSORS = 2  # told to programs: a pool of as many workers has to fit into the limits anywhere
MAX_THREAD_STACK_MB = 256
# A jail has no /proc, through which these names lead in a plain system.
STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
STREAMS.update(
    {f"{place}/{number}": number for place in ("/dev/fd", "/proc/self/fd") for number in range(3)}
)


def site_builtins() -> dict[str, Any]:
    """What `site` would have added and programs use."""
    import _sitebuiltins

    return {
        "exit": _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)"),
        "help": _sitebuiltins._Helper(),
        "quit": _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)"),
    }


def settle() -> None:
    """Once, in the zygote: what is the same for all programs."""
    builtins.__dict__.update(site_builtins())
    for name in ("posix", "os"):
        if name in sys.modules:
            sys.modules[name].__dict__["cpu_count"] = lambda: PROCESSORS


def arrange(message: dict[str, Any]) -> None:
    """In each child, before its program: streams, and what depends on its limits."""
    reopen_streams()
    if message.get("named_streams"):
        name_streams()
    bound_thread_stacks(min(message["memory_mb"], MAX_THREAD_STACK_MB) << 20)
    random = sys.modules.get("random")
    if random is not None:
        random.seed(0)  # a program that draws without a seed has to be judged the same again


def reopen_streams() -> None:
    """Fresh text streams over the new descriptors, as a new interpreter would have."""
    text: dict[str, Any] = {"encoding": "utf-8", "closefd": False}
    streams = {
        "stdin": open(0, **text),  # noqa: SIM115 - they live as long as the process
        "stdout": open(1, "w", **text),  # noqa: SIM115
        "stderr": open(2, "w", 1, errors="backslashreplace", **text),  # noqa: SIM115
    }
    vars(sys).update(streams)
    vars(sys).update({f"__{name}__": stream for name, stream in streams.items()})
    sys.argv = ["solution.py"]


def flush_streams() -> None:
    """As an interpreter does at its end; what it replaced and forgot may fail in silence."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    try:
        if sys.__stdout__ is not None and sys.__stdout__ is not sys.stdout:
            sys.__stdout__.flush()
    except (OSError, ValueError):  # closed or detached: an interpreter would just drop it
        return


class Open:
    """`open` that knows the streams' names. No function: one would become a method of a class."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __call__(self, file: Any, *rest: Any, **named: Any) -> Any:
        """As `open`; a stream shares its position with the one that is open already."""
        path = posix.fspath(file) if hasattr(type(file), "__fspath__") else file
        descriptor = STREAMS.get(path) if type(path) is str else None
        return self._plain(file if descriptor is None else posix.dup(descriptor), *rest, **named)


def name_streams() -> None:
    """Let `open("/dev/stdin")` and its like work."""
    shown = Open(builtins.open)
    vars(builtins)["open"] = vars(sys.modules["io"])["open"] = shown


def bound_thread_stacks(most: int) -> None:
    """Give a thread at most this many bytes of stack, whatever the program asks for.

    Programs that recurse ask for half a gigabyte, more than the address space of many a problem;
    the interpreter's own calls need next to none of it.
    """
    import _thread

    plain, asked = _thread.stack_size, [0]

    def stack_size(size: int = 0, /) -> int:
        before = asked[0]
        plain(min(size, most))
        asked[0] = size
        return before

    for name in ("_thread", "threading"):
        if name in sys.modules:
            sys.modules[name].__dict__["stack_size"] = stack_size
