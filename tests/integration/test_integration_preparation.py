"""A run that is stopped or killed while it is prepared: no orphan, and --resume goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from integration_support import command, environment, outcomes, train, write_config

pytestmark = pytest.mark.integration


def start(config: Path) -> subprocess.Popen[str]:
    """`prime-core train` in a process group of its own, until its preparation has begun."""
    process = subprocess.Popen(
        command("train", config),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    lock = config.parent / "run" / "locks" / "preparation.lock"
    while not (lock.exists() and lock.read_text().strip()):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    return process


def preparing(run_dir: Path) -> bool:
    """Whether the process that took the preparation's lock still runs."""
    pid = int((run_dir / "locks" / "preparation.lock").read_text())
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_ctrl_c_during_the_preparation(tmp_path: Path, tiny_model: Path) -> None:
    process = start(write_config(tmp_path, tiny_model))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "stopped by SIGINT while the run was prepared" in output
    assert "Traceback" not in output
    assert not preparing(tmp_path / "run")


def test_a_killed_supervisor_takes_the_preparation_with_it(
    tmp_path: Path, tiny_model: Path
) -> None:
    config = write_config(tmp_path, tiny_model, steps=1)
    process = start(config)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while preparing(tmp_path / "run"):
        assert time.monotonic() < deadline, "the preparation outlived its supervisor"
        time.sleep(0.05)
    train(config, "--resume")
    assert outcomes(tmp_path / "run")["holds"]
