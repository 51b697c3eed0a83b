"""One seccomp policy for every launcher: as kafel text for nsjail, as BPF for bwrap and Landlock.

What an interpreter and an honest program never need is refused with an error; so is whatever would
reach the zygote of the same user. Invariant: both forms come from the same tables.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from prime_core.api.errors import SandboxError

EPERM, ENOSYS = 1, 38

# name: number on x86_64, on aarch64 (asm/unistd_64.h, asm-generic/unistd.h); None: not there.
REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    # other processes: their memory, descriptors, limits, priorities
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # wide attack surface of the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "vmsplice": (278, 75),
    "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "_sysctl": (156, None),
    "personality": (135, 92),
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    # memory that no limit of a process counts, or that outlives it
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # network
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # times of files that outlive an input: the folder's, and those of the host's own /dev/null
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    # administration
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
}

FIRST_UNKNOWN = 457  # statmount (Linux 6.8) and what comes after it is answered with ENOSYS
LAST_NUMBER = 511  # what kafel is told of; BPF needs no end


@dataclass(frozen=True, slots=True)
class Condition:
    """A call that one argument decides: refused where (argument & mask) == value is `refused`."""

    numbers: tuple[int, int]
    argument: int
    mask: int
    value: int
    refused: bool


# CLONE_NEWTIME has no bit in clone(); clone3 hides its flags from BPF, and glibc does without it.
NEW_NAMESPACES = 0x7E020000
WORD = 0xFFFFFFFF
CONDITIONS: Mapping[str, Condition] = {
    "clone": Condition((56, 220), 0, NEW_NAMESPACES, 0, refused=False),
    "ioctl": Condition((16, 29), 1, WORD, 0x5412, refused=True),  # TIOCSTI
    "prlimit64": Condition((302, 261), 0, WORD, 0, refused=False),  # of others: pid not 0
    "sched_setaffinity": Condition((203, 122), 0, WORD, 0, refused=False),
    "socketpair": Condition((53, 199), 0, WORD, 1, refused=False),  # AF_UNIX, which asyncio needs
}
CLONE3 = 435  # the same number everywhere

_COLUMNS = {"x86_64": 0, "aarch64": 1}
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h


def _machine() -> str:
    found = platform.machine()
    if found not in _COLUMNS:
        raise SandboxError(
            f"there is no seccomp policy for {found} processors",
            fix="judge programs on an x86_64 or aarch64 machine",
        )
    return found


def kafel_policy() -> str:
    """The policy as nsjail's `--seccomp_string` takes it; numbers, so that no name is unknown."""
    column = _COLUMNS[_machine()]
    refused = [f"SYSCALL[{pair[column]}]" for pair in REFUSED.values() if pair[column] is not None]
    unknown = [f"SYSCALL[{number}]" for number in range(FIRST_UNKNOWN, LAST_NUMBER + 1)]
    lines = [f"ERRNO({EPERM}) {{ {', '.join(refused)} }}"]
    for name, rule in CONDITIONS.items():
        arguments = ", ".join("abcdef"[: rule.argument + 1])
        test = f"({'abcdef'[rule.argument]} & {rule.mask}) {'==' if rule.refused else '!='} "
        lines.append(f"ERRNO({EPERM}) {{ {name}({arguments}) {{ {test}{rule.value} }} }}")
    lines.append(f"ERRNO({ENOSYS}) {{ SYSCALL[{CLONE3}], {', '.join(unknown)} }}")
    return f"POLICY prime {{ {', '.join(lines)} }} USE prime DEFAULT ALLOW"


# linux/bpf_common.h and linux/seccomp.h
_LOAD, _JUMP_EQUAL, _JUMP_NOT_BELOW, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000


def bpf_program() -> bytes:
    """The policy as an array of `struct sock_filter`, as bwrap's `--seccomp` and prctl take it."""
    machine = _machine()
    column = _COLUMNS[machine]
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_JUMP_NOT_BELOW, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
        (_JUMP_NOT_BELOW, 0, 1, FIRST_UNKNOWN),
        (_RETURN, 0, 0, _ERRNO | ENOSYS),
        (_JUMP_EQUAL, 0, 1, CLONE3),
        (_RETURN, 0, 0, _ERRNO | ENOSYS),
    ]
    for pair in REFUSED.values():
        number = pair[column]
        if number is not None:
            code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | EPERM)]
    for rule in CONDITIONS.values():
        equal, unequal = (_ERRNO | EPERM, _ALLOW) if rule.refused else (_ALLOW, _ERRNO | EPERM)
        code += [
            (_JUMP_EQUAL, 0, 5, rule.numbers[column]),
            (_LOAD, 0, 0, 16 + 8 * rule.argument),  # the low word: both are little-endian
            (_AND, 0, 0, rule.mask),
            (_JUMP_EQUAL, 0, 1, rule.value),
            (_RETURN, 0, 0, equal),
            (_RETURN, 0, 0, unequal),
        ]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
