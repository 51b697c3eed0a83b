"""Killed at any instant and started again, a run decides the same, bit for bit (invariant 3)."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from integration_support import command, decided, environment, prime_core, train, write_config

from prime_core.store.metrics import read_metrics

pytestmark = pytest.mark.integration

# A step takes a twentieth of a second on a quiet machine: enough of them that a kill finds work.
STEPS = 40
MOST_KILLS_OF_A_ROLE = 3  # the supervisor gives up a role that dies six times within a minute


@pytest.fixture(scope="module")
def reference(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What an undisturbed run of the same config decides."""
    folder = tmp_path_factory.mktemp("reference")
    train(write_config(folder, tiny_model, steps=STEPS))
    return decided(folder / "run")


def start(config: Path, *options: str) -> subprocess.Popen[bytes]:
    with (config.parent / "train.log").open("ab") as log:
        return subprocess.Popen(
            command("train", config, *options),
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment(),
        )


def wait_for(path: Path, process: subprocess.Popen[bytes], *, seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, (path.parents[2] / "train.log").read_text()[-3000:]
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


def roles(supervisor: int) -> list[psutil.Process]:
    return psutil.Process(supervisor).children()


def role_of(process: psutil.Process) -> str:
    """The role, or "" for what is no role or dead already."""
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return ""
    found = re.search(r"prime_core (trainer|intake|worker) ", line)
    return found[1] if found else ""


def check_balance(run_dir: Path) -> None:
    prime_core("outcomes", run_dir, "--json")


def test_a_killed_supervisor_takes_everything_with_it_and_resumes_bit_for_bit(
    tiny_model: Path, tmp_path: Path, reference: dict[str, str]
) -> None:
    config = write_config(tmp_path, tiny_model, steps=STEPS)
    process = start(config)
    wait_for(tmp_path / "run" / "policies" / "000003" / "seal.json", process)
    children = roles(process.pid)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    train(config, "--resume")
    assert decided(tmp_path / "run") == reference
    check_balance(tmp_path / "run")


def test_ctrl_c_stops_cleanly_and_the_run_goes_on_later(
    tiny_model: Path, tmp_path: Path, reference: dict[str, str]
) -> None:
    config = write_config(tmp_path, tiny_model, steps=STEPS)
    process = start(config)
    wait_for(tmp_path / "run" / "policies" / "000002" / "seal.json", process)
    children = roles(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 2
    assert not [child for child in children if child.is_running()]
    assert "--resume" in (tmp_path / "train.log").read_text()
    train(config, "--resume")
    assert decided(tmp_path / "run") == reference


def kill_roles(
    process: subprocess.Popen[bytes], run_dir: Path, order: random.Random, kills: int
) -> list[str]:
    """Kill one role at each of some random steps; names in order.

    The instants follow the run's own progress, not a clock, so that they find it at work on any
    machine.
    """
    killed: list[str] = []
    for version in sorted(order.sample(range(1, STEPS - 2), kills)):
        wait_for(run_dir / "policies" / f"{version:06d}" / "seal.json", process)
        time.sleep(order.uniform(0.0, 0.1))
        victims = {role_of(child): child for child in roles(process.pid)}
        names = sorted(n for n in victims if n and killed.count(n) < MOST_KILLS_OF_A_ROLE)
        name = order.choice(names)
        os.kill(victims[name].pid, signal.SIGKILL)
        killed.append(name)
    return killed


@pytest.mark.parametrize(
    ("seed", "kills"), [(1, 4), *(pytest.param(s, 8, marks=pytest.mark.slow) for s in range(2, 8))]
)
def test_killed_roles_are_restarted_and_nothing_is_lost_or_doubled(
    tiny_model: Path, tmp_path: Path, reference: dict[str, str], seed: int, kills: int
) -> None:
    config = write_config(tmp_path, tiny_model, steps=STEPS)
    process = start(config)
    wait_for(tmp_path / "run" / "policies" / "000000" / "seal.json", process)
    killed = kill_roles(process, tmp_path / "run", random.Random(seed), kills)
    assert process.wait(300) == 0, (tmp_path / "train.log").read_text()[-3000:]
    assert len(killed) == kills
    print(f"seed {seed}: killed {', '.join(killed)}")
    assert decided(tmp_path / "run") == reference
    check_balance(tmp_path / "run")
    trained = [r for r in read_metrics(tmp_path / "run") if r.get("lag/max") is not None]
    assert max(record["lag/max"] for record in trained) <= 2
