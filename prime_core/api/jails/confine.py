"""Confines a forked child where no launcher did: Landlock, seccomp, no new privileges.

Lies in the staged root as `prime_confine`; the zygote imports it only when it's told to. Invariant:
a step that fails ends the child before any code of the program ran.
"""

from __future__ import annotations

import ctypes
import posix

TYPE_CHECKING = False  # importing typing would cost 10 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, FILTER = 38, 22, 36, 2
# linux/landlock.h; the same numbers on every machine.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
CREATE_VERSION, RULE_PATH_BENEATH = 1, 1
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
TCP_BIND_CONNECT = 3  # since ABI 4
SCOPE_ABSTRACT_AND_SIGNAL = 3  # since ABI 6
FILE_RIGHTS = EXECUTE | (1 << 1) | READ_FILE | (1 << 14) | (1 << 15)


class Ruleset(ctypes.Structure):
    """struct landlock_ruleset_attr."""

    _fields_ = [
        ("access_fs", ctypes.c_uint64),
        ("access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class PathBeneath(ctypes.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


class Filter(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def check(result: int, what: str) -> int:
    """Raise with the errno of a failed call."""
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def prepare(options: dict[str, Any]) -> Callable[[], object]:
    """Make this process the reaper of all below it; returns what confines a child.

    Args:
        options: read (paths that may be read and executed), write (paths that may be written), and
            filter (a BPF program).
    """
    library = ctypes.CDLL(None, use_errno=True)
    check(library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER")
    abi = check(library.syscall(CREATE_RULESET, None, 0, CREATE_VERSION), "Landlock")
    handled = RIGHTS_BY_ABI[max(each for each in RIGHTS_BY_ABI if each <= abi)]
    ruleset = Ruleset(
        handled, TCP_BIND_CONNECT if abi >= 4 else 0, SCOPE_ABSTRACT_AND_SIGNAL if abi >= 6 else 0
    )
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    text = ctypes.create_string_buffer(options["filter"], len(options["filter"]))
    program = Filter(len(options["filter"]) // 8, ctypes.addressof(text))
    paths = [(path, EXECUTE | READ_FILE | READ_DIR) for path in options["read"]]
    paths += [(path, handled) for path in options["write"]]

    def confine() -> object:
        check(library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
        rules = check(
            library.syscall(CREATE_RULESET, ctypes.byref(ruleset), size, 0), "landlock ruleset"
        )
        for path, access in paths:
            place = posix.open(path, posix.O_PATH)
            folder = posix.fstat(place).st_mode & 0o170000 == 0o040000
            allowed = access & handled & (~0 if folder else FILE_RIGHTS)
            rule = PathBeneath(allowed, place)
            pointer = ctypes.byref(rule)
            added = library.syscall(ADD_RULE, rules, RULE_PATH_BENEATH, pointer, 0)
            check(added, "landlock rule")
            posix.close(place)
        check(library.syscall(RESTRICT_SELF, rules, 0), "landlock restrict")
        posix.close(rules)
        filtered = library.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0)
        check(filtered, "PR_SET_SECCOMP")
        # The buffers live as long as this function does.
        return text

    return confine
