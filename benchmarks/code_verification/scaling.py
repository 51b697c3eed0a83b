"""Throughput by cores: the same work on one core, on two, and so on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from code_verification.boxes import open_verifier
from code_verification.cpu import CpuMeter, machine_seconds
from code_verification.material import PROBLEM, SOLUTION, TESTS, fenced
from code_verification.part import Part

# A verdict waits for its jail now and then; two verifiers a core keep the core busy meanwhile.
VERIFIERS_A_CORE = 2
WARM_UP = 3  # solutions that each verifier judges before the clock runs
MIN_GAIN = 1.6  # of twice the cores, on a machine that does nothing else
MAX_CONTENTION = 1.3  # CPU of one solution on all cores beside that on one
QUIET = 0.15  # cores that the rest of the machine may use for rates to be held to `MIN_GAIN`

WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from code_verification.scaling import work
work(Path(sys.argv[2]), int(sys.argv[3]), {int(core) for core in sys.argv[4].split(",")})
"""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a number of cores did.

    Attributes:
        a_second: solutions.
        cpu_ms: of one solution.
        others: cores that the rest of the machine used meanwhile.
    """

    a_second: float
    cpu_ms: float
    others: float


def work(cache: Path, count: int, cores: set[int]) -> None:
    """One verifier with a sandbox of its own on some cores, in a process of its own."""
    os.sched_setaffinity(0, cores)
    with open_verifier(cache) as verifier:
        for number in range(-WARM_UP, count):
            if number == 0:
                print("ready", flush=True)
                sys.stdin.readline()
            score = verifier.judge_data(PROBLEM, fenced(SOLUTION))
            assert score.value == 1.0, score
        print("done", flush=True)
        sys.stdin.readline()


def measure(cache: Path, each: int, cores: list[int], meter: CpuMeter) -> Rate:
    """Start the verifiers, let all of them go at once, and stop the clock at the last one."""
    place = ",".join(map(str, cores))
    command = [sys.executable, "-c", WORKER, str(Path(__file__).parents[1]), str(cache), str(each)]
    running = [
        subprocess.Popen(
            [*command, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(VERIFIERS_A_CORE * len(cores))
    ]

    def all_say(word: str) -> None:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == word

    def tell_all() -> None:
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go on\n")
            process.stdin.flush()

    all_say("ready")
    began, ours, machine = time.perf_counter(), meter.seconds(), machine_seconds()
    tell_all()
    all_say("done")
    wall, cpu = time.perf_counter() - began, meter.seconds() - ours
    machine = machine_seconds() - machine
    tell_all()
    for process in running:
        process.communicate()
        assert process.returncode == 0
    solutions = each * len(running)
    return Rate(solutions / wall, 1000 * cpu / solutions, max(0.0, machine - cpu) / wall)


def throughput(cache: Path, each: int) -> Part:
    """Solutions a second on 1, 2, 4... cores, up to those that we may use."""
    part = Part(f"solutions of {TESTS} tests a second, by cores")
    usable = sorted(os.sched_getaffinity(0))
    counts = [1 << power for power in range(8) if 1 << power <= len(usable)]
    meter = CpuMeter()
    rates = {count: measure(cache, each, usable[:count], meter) for count in counts}
    meter.close()
    for count, rate in rates.items():
        part.figures[f"{count} core{'s' if count > 1 else ''}"] = (
            f"{rate.a_second:.1f} a second, {rate.cpu_ms:.1f} ms of CPU a solution, "
            f"{rate.others:.2f} cores used by others"
        )
    one, most = rates[1], rates[counts[-1]]
    part.figures["gain"] = f"{most.a_second / one.a_second:.2f} times on {counts[-1]} cores"
    for fewer, more in pairwise(counts):
        gain = rates[more].a_second / rates[fewer].a_second
        quiet = max(rates[more].others, rates[fewer].others) <= QUIET
        part.require(
            gain >= MIN_GAIN or not quiet or not meter.complete,
            f"{more} cores do {gain:.2f} times the work of {fewer}, not {MIN_GAIN}",
        )
    part.require(
        most.cpu_ms <= MAX_CONTENTION * one.cpu_ms or not meter.complete,
        f"a solution costs {most.cpu_ms / one.cpu_ms:.2f} times as much CPU on all cores",
    )
    return part
