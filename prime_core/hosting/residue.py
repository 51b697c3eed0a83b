"""What a call leaves behind in a host: restored where that can be exact, else reported.

Used by the host's loop around every item. Invariant (9 of the design): the next item sees the
process as the first one saw it, or runs in another process.
"""

from __future__ import annotations

import locale
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prime_core.hosting.keeper import descendants

# Those that graders and their libraries take; asking for all 64 costs more than a cheap verifier.
SIGNALS = (
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
    signal.SIGPIPE,
    signal.SIGXCPU,
)
THREAD_GRACE_S = 0.02  # a thread that is ending gets this long


class Baseline:
    """The process state after the environment was made, and how to get back to it.

    Args:
        kept: gives the ids of processes that are meant to stay: a sandbox's warmed jails.
    """

    def __init__(self, kept: Callable[[], frozenset[int]] = frozenset) -> None:
        self._kept = kept
        self._directory = os.getcwd()  # noqa: PTH109 - a string, compared once per item
        self._umask = _umask()
        self._variables = dict(_raw_variables())
        self._locale = locale.setlocale(locale.LC_ALL)
        self._handlers = {number: signal.getsignal(number) for number in SIGNALS}
        self._streams = (sys.stdin, sys.stdout, sys.stderr)
        self._recursion = sys.getrecursionlimit()
        self._digits = sys.get_int_max_str_digits()
        self._threads = {thread.ident for thread in threading.enumerate()}
        self._children = _children(kept())

    def before_item(self) -> None:
        """Seed the global generators: a score must not depend on what ran before it."""
        random.seed(0)
        numpy = sys.modules.get("numpy")
        if numpy is not None and "numpy.random" in sys.modules:
            numpy.random.seed(0)
        sympy_random: Any = sys.modules.get("sympy.core.random")
        if sympy_random is not None:
            sympy_random.rng.seed(0)

    def after_item(self) -> str | None:
        """Restore what can be; the reason to replace this process where something can't."""
        try:
            self._restore()
        except (OSError, ValueError, TypeError, locale.Error) as error:
            return f"process state can't be restored: {type(error).__name__}: {error}"
        thread = self._new_thread()
        if thread is not None:
            return f"thread {thread!r} is left running"
        left = _children(self._kept()) - self._children
        return f"child process {min(left)} is left running" if left else None

    def _restore(self) -> None:
        if signal.getitimer(signal.ITIMER_REAL)[0]:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            if signal.getsignal(number) != handler and handler is not None:
                signal.signal(number, handler)
        if signal.pthread_sigmask(signal.SIG_BLOCK, []):
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if os.getcwd() != self._directory:  # noqa: PTH109
            os.chdir(self._directory)
        if _umask() != self._umask:
            os.umask(self._umask)
        if _raw_variables() != self._variables:
            os.environb.clear()
            os.environb.update(self._variables)
        if locale.setlocale(locale.LC_ALL) != self._locale:
            locale.setlocale(locale.LC_ALL, self._locale)
        sys.stdin, sys.stdout, sys.stderr = self._streams
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        if sys.get_int_max_str_digits() != self._digits:
            sys.set_int_max_str_digits(self._digits)

    def _new_thread(self) -> str | None:
        deadline = time.monotonic() + THREAD_GRACE_S
        for thread in threading.enumerate():
            if thread.ident in self._threads:
                continue
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                return thread.name
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _raw_variables() -> dict[bytes, bytes]:
    """The bytes behind os.environ: comparing them costs 1 us an item, os.environ itself 46."""
    found: dict[bytes, bytes] = vars(os.environb)["_data"]
    return found


def _children(kept: frozenset[int]) -> frozenset[int]:
    """Process ids of living descendants, without those that are kept and what is below them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()  # no children at all, which one system call tells
    if not kept:
        return frozenset(descendants(os.getpid()))
    # With jails there always are some: reading those lists costs a tenth of reading all of /proc.
    found: set[int] = set()
    queue = [os.getpid()]
    while queue:
        below = _listed_children(queue.pop()) - kept
        found |= below
        queue += below
    return frozenset(process for process in found if _lives(process))


def _listed_children(process: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found.update(int(word) for word in task.read_text().split())
        except OSError:
            continue  # that thread ended while we looked
    return found


def _lives(process: int) -> bool:
    """Not a zombie, which is left to its parent."""
    try:
        data = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return False
    return data.rpartition(b")")[2].split()[0] != b"Z"
