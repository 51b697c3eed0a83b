"""In a forked child of the zygote: closes, limits and confines itself, then runs the program.

Lies beside `zygote.py` in the staged root as `prime_runner`. Invariant: nothing that the program
does here can be worse than a wrong answer; `ok` needs exit code 0 and, of a call, a whole result.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import builtins
import gc
import marshal
import posix
import resource
import sys

import prime_encoder  # type: ignore[import-not-found]  # these lie beside this file
import prime_surroundings  # type: ignore[import-not-found]

TYPE_CHECKING = False  # importing typing would cost 10 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

# Exit codes that say why; a program that exits with one of them fails under another name, no more.
NO_ENTRY_POINT, BAD_RESULT_TYPE, OUT_OF_MEMORY, NOT_COMPILED, TOO_LARGE = 241, 242, 243, 244, 245
NO_MODULE = 246
RESULT = 3  # descriptor that a call's result is written to
BASE_MB = 192  # address space of the interpreter itself, with the modules it may load

# Confines a child, where no launcher has confined the zygote already: see `prepare`.
confining: list[Callable[[], object]] = []


def prepare(settings: dict[str, Any]) -> None:
    """Get ready what each child needs, once, in the zygote."""
    sys.path += settings.get("path", [])
    if "confine" in settings:
        import prime_confine  # type: ignore[import-not-found]

        confining.append(prime_confine.prepare(settings["confine"]))
    preload(settings.get("preload", []))
    gc.collect()
    gc.freeze()  # a collection in a child must not copy the pages of what is shared


def preload(modules: Iterable[str]) -> None:
    """Import modules of the standard library before the fork, so that children needn't."""
    for name in modules:
        try:
            __import__(name)
        except ImportError:
            continue  # the program will hear of it itself
    if modules:
        gc.collect()
        gc.freeze()


def descendants(ancestor: int) -> list[int]:
    """All below a process, from /proc, where there is no pid namespace."""
    found: list[int] = []
    queue = [ancestor]
    while queue:
        process = queue.pop()
        try:
            tasks = posix.listdir(f"/proc/{process}/task")
        except OSError:
            continue  # it ended while we looked
        for task in tasks:
            below = [int(word) for word in read(f"/proc/{process}/task/{task}/children").split()]
            found += below
            queue += below
    return found


def read(path: str) -> bytes:
    """A small file; empty where it's gone."""
    try:
        file = posix.open(path, posix.O_RDONLY)
    except OSError:
        return b""
    try:
        return posix.read(file, 1 << 16)
    except OSError:
        return b""
    finally:
        posix.close(file)


def become(
    settings: dict[str, Any],
    message: dict[str, Any],
    descriptors: list[int],
    programs: dict[str, Any],
) -> NoReturn:
    """Turn this fork into a child that runs one input. Never returns."""
    code = 1
    try:
        given, output, errors = descriptors
        data = b""
        kind = message["mode"]
        if kind != "script":
            data = posix.pread(given, posix.fstat(given).st_size, 0)
            posix.lseek(given, 0, 2)
        posix.dup2(given, 0)
        posix.dup2(output if kind == "script" else errors, 1)
        posix.dup2(errors, 2)
        if kind != "script" and output != RESULT:
            posix.dup2(output, RESULT)
        posix.closerange(RESULT if kind == "script" else RESULT + 1, 1 << 16)
        posix.setsid()
        posix.chdir(settings["tmp"])
        set_limits(message, settings.get("processes_before", 0))
        for confine in confining:
            confine()
        prime_surroundings.arrange(message)
        if kind == "compile":
            code = compile_program(data)
        elif kind == "script":
            code = run_script(programs["code"])
        else:
            code = run_call(programs["code"], message["entry"], data)
    except MemoryError:
        code = OUT_OF_MEMORY
    finally:
        posix._exit(code)


def set_limits(message: dict[str, Any], processes_before: int) -> None:
    """Kernel limits of one child, soft and hard; none above what the jail was started with.

    `processes_before` is what the kernel counts for this user beside the jail's own.
    """
    megabyte = 1 << 20
    wanted = [
        (resource.RLIMIT_AS, (message["memory_mb"] + message["stack_mb"] + BASE_MB) * megabyte),
        (resource.RLIMIT_CPU, int(message["cpu_seconds"]) + 2),  # the zygote is more exact
        (resource.RLIMIT_FSIZE, message["output_bytes"]),
        (resource.RLIMIT_NOFILE, message["open_files"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, processes_before + message["processes"] + 1),  # and the zygote
    ]
    for name, value in wanted:
        hard = resource.getrlimit(name)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (most, most))
    # Programs that recurse ask for more stack, all that there is: the address space bounds it.
    stack, hard = message["stack_mb"] * megabyte, resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard != resource.RLIM_INFINITY:
        stack = min(stack, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, hard))


def compile_program(data: bytes) -> int:
    """Compile prelude and source; their code goes to the zygote, which never sees the text."""
    prelude, source = marshal.loads(data)  # noqa: S302 - the host wrote it
    try:
        codes = (
            compile(prelude, "prelude.py", "exec", dont_inherit=True),
            compile(source, "solution.py", "exec", dont_inherit=True),
        )
    except (SyntaxError, ValueError, RecursionError, OverflowError) as error:
        place = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        reason = getattr(error, "msg", None) or error
        sys.stderr.write(f"{type(error).__name__}: {reason}{place}\n")
        sys.stderr.flush()
        return NOT_COMPILED
    write(RESULT, marshal.dumps(codes))
    return 0


def write(descriptor: int, data: bytes) -> None:
    """All of it."""
    view = memoryview(data)
    while view:
        view = view[posix.write(descriptor, view) :]


def new_module(name: str) -> dict[str, Any]:
    """An empty module in sys.modules; its namespace."""
    module = type(sys)(name)
    sys.modules[name] = module
    names = module.__dict__
    names["__builtins__"] = builtins
    names["__file__"] = "solution.py"
    return names


def run_script(codes: Iterable[Any]) -> int:
    """Run the program as `__main__`; its exit code as a plain interpreter would give it."""
    names = new_module("__main__")
    try:
        for code in codes:
            exec(code, names)  # noqa: S102 - what all the rest is there for
        code = 0
    except BaseException as error:  # noqa: BLE001 - an interpreter reports all of them
        code = report(error)
    code = finish(code)
    names.clear()  # closes and flushes what the program opened over descriptor 1
    gc.collect()
    return code


def report(error: BaseException) -> int:
    """Print what ended the program; the exit code for it."""
    if isinstance(error, SystemExit):
        code = error.code
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        sys.stderr.write(f"{code}\n")
        return 1
    if isinstance(error, MemoryError):
        error.__traceback__ = None  # its frames hold what used the memory up
        return OUT_OF_MEMORY
    trace = error.__traceback__ and error.__traceback__.tb_next  # without our own frame
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return NO_MODULE if isinstance(error, ModuleNotFoundError) else 1


def finish(code: int) -> int:
    """What an interpreter does at its end: waits for threads, runs exit handlers, flushes."""
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()
        if "atexit" in sys.modules:
            sys.modules["atexit"]._run_exitfuncs()
        prime_surroundings.flush_streams()
    except BaseException as error:  # noqa: BLE001
        return code or report(error) or 120  # as an interpreter that can't flush
    return code


def run_call(codes: Iterable[Any], entry: str, data: bytes) -> int:
    """Import the program as a module, call its entry, write the result."""
    names = new_module("solution")
    try:
        for code in codes:
            exec(code, names)  # noqa: S102 - what all the rest is there for
        target = find_entry(names, entry)
        if target is None:
            return NO_ENTRY_POINT
        arguments, keywords = marshal.loads(data)  # noqa: S302 - the host wrote it
        value = target(*arguments, **keywords)
        parts: list[str] = []
        try:
            prime_encoder.encode(value, parts.append, 0)
        except TypeError as error:
            write(2, f"{error}\n".encode("utf-8", "backslashreplace"))
            return BAD_RESULT_TYPE
        result = "".join(parts).encode("ascii")
    except BaseException as error:  # noqa: BLE001
        return finish(report(error) or 1)  # to leave by exit(0) is not to return
    if finish(0):
        return 1
    if len(result) > resource.getrlimit(resource.RLIMIT_FSIZE)[0]:
        return TOO_LARGE
    write(RESULT, result + b"\n")  # a second result, of a fork that returned too, is one too many
    return 0


def find_entry(names: dict[str, Any], entry: str) -> Any:
    """`Solution().entry` where there is such a method, else the module's own name."""
    solution = names.get("Solution")
    if isinstance(solution, type) and hasattr(solution, entry):
        return getattr(solution(), entry)
    target = names.get(entry)
    return target if callable(target) else None


_signal.pthread_sigmask(_signal.SIG_SETMASK, [])
