"""Submissions in a row, a third of them attacks: the benchmark's own soak, short and long."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prime_core.api import Sandbox

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "code_verifier.py"


@pytest.mark.integration
@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_nothing_leaks_and_every_verdict_is_right(jails: Sandbox, count: int) -> None:
    command = [sys.executable, str(BENCHMARK), "soak", "--count", str(count), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (part,) = json.loads(done.stdout)
    assert part["failures"] == []
    assert part["figures"]["processes after closing"] == 0


@pytest.mark.slow
@pytest.mark.integration
def test_verdicts_stay_equal_under_load_and_elsewhere(jails: Sandbox) -> None:
    command = [sys.executable, str(BENCHMARK), "equal", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
