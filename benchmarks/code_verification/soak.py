"""Thousands of submissions, a third of them attacks: verdicts stay right, nothing is left."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

import psutil
from prime_verifier_code import CodeParams, CodeVerifier

from code_verification.boxes import open_sandbox
from code_verification.material import ATTACK_PROBLEM, ATTACKS, PROBLEM, SOLUTION, fenced
from code_verification.part import Part

WARM_UP = 20  # submissions before the first look: lazy imports, arenas, the staged interpreter
MAX_GROWTH_MIB = 24.0
CGROUPS = Path("/sys/fs/cgroup")
WRONG = SOLUTION.replace("sum", "max")


@dataclass(frozen=True, slots=True)
class Traces:
    """What this process and its host hold."""

    processes: int
    descriptors: int
    mounts: int
    cgroups: int
    cache_mib: float
    memory_mib: float


def traces(cache: Path) -> Traces:
    """Count everything."""
    gc.collect()
    me = psutil.Process()
    files = [path for path in cache.rglob("*") if path.is_file() and not path.is_symlink()]
    return Traces(
        processes=len(me.children(recursive=True)),
        descriptors=me.num_fds(),
        mounts=_our_mounts(cache),
        cgroups=_our_cgroups(),
        cache_mib=sum(path.stat().st_size for path in files) / 2**20,
        memory_mib=me.memory_info().rss / 2**20,
    )


def _our_mounts(cache: Path) -> int:
    """Mounts of a jail's files or folders; others of the machine come and go."""
    places = (str(cache), "/prime-core", "nsjail", gettempdir())
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return sum(any(place in line for place in places) for line in lines)


def _our_cgroups() -> int:
    """Groups below us; others of the machine come and go."""
    return sum(str(os.getpid()) in path.name for path in CGROUPS.rglob("*") if path.is_dir())


def soak(cache: Path, count: int) -> Part:
    """Judge `count` submissions: a third right, a third wrong, a third attacks."""
    part = Part(f"{count} submissions, a third of them attacks")
    with open_sandbox(cache) as sandbox:
        verifier = CodeVerifier(CodeParams(), sandbox)
        before = None
        for number in range(-WARM_UP, count):
            if number == 0:
                before = traces(cache)
            _submit(verifier, number, part)
        after = traces(cache)
    left = traces(cache)
    assert before is not None
    growth = after.memory_mib - before.memory_mib
    part.figures = {
        "errors and wrong verdicts": len(part.failures),
        "memory grew, MiB": round(growth, 1),
        "processes after closing": left.processes,
        "descriptors before, after": f"{before.descriptors}, {after.descriptors}",
        "mounts before, after": f"{before.mounts}, {left.mounts}",
        "cgroups after closing": left.cgroups,
        "cache grew, MiB": round(after.cache_mib - before.cache_mib, 2),
    }
    part.require(growth <= MAX_GROWTH_MIB, f"memory grew by {growth:.1f} MiB")
    part.require(left.processes == 0, f"{left.processes} processes are left")
    part.require(after.descriptors <= before.descriptors + 8, "descriptors leak")
    part.require(left.mounts <= before.mounts, "mounts are left")
    part.require(left.cgroups == 0, f"{left.cgroups} cgroups are left")
    part.require(after.cache_mib <= before.cache_mib + 0.1, "files are left in the cache")
    return part


def _submit(verifier: CodeVerifier, number: int, part: Part) -> None:
    sort, place = number % 3, number // 3
    if sort == 0:
        attack = ATTACKS[place % len(ATTACKS)]
        score = verifier.judge_data(ATTACK_PROBLEM, fenced(attack))
        expected = 0.0
    else:
        expected = 1.0 if sort == 1 else 0.0
        score = verifier.judge_data(PROBLEM, fenced(SOLUTION if sort == 1 else WRONG))
    part.require(score.value == expected, f"submission {number}: {score.value} {score.evidence}")
