"""Asynchrony in whole runs: exact lags, carried groups, several workers, one of which dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from hosting_support import write_distribution
from integration_support import command, environment, outcomes, steps_of, train, write_config

from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog
from prime_core.store.view import members

pytestmark = pytest.mark.integration

GROUPS, SIZE = 6, 4  # of a step, as the config has them


@pytest.mark.parametrize(("level", "steps"), [(0, 3), (4, 6)])
def test_the_lag_is_exact_at_every_level(
    tiny_model: Path, tmp_path: Path, level: int, steps: int
) -> None:
    summary = train(write_config(tmp_path, tiny_model, steps=steps, level=level))
    lags = Counter(min(step, level) for step in range(steps))
    expected = {str(lag): count * GROUPS * SIZE for lag, count in sorted(lags.items())}
    assert summary["lag"] == expected
    total = outcomes(tmp_path / "run")["total"]
    assert total["outcomes"]["trained"] == steps * GROUPS * SIZE
    assert total["dispatched"] == sum(total["outcomes"].values())
    assert total["in_flight"] == total["carried"] == 0
    for record in steps_of(tmp_path / "run"):
        assert record["lag/mean"] == min(record["step"], level)


# Whether a group has a signal is chance, so that workers make too many groups or too few.
CHANCE = """
import hashlib

from prime_core.api import EnvironmentInfo, EnvironmentSpec, Message, Score, Task, hookimpl


class Environment:
    info = EnvironmentInfo("chance", "0.1", "0" * 64, "Apache-2.0")

    def tasks(self):
        return [Task(f"t{n}", (Message("user", f"{n}+"),)) for n in range(9)]

    def render(self, task, budget):
        return task.prompt

    @property
    def verifier(self):
        return self

    def verify(self, task, completion):
        digest = hashlib.sha256(completion.text.encode()).digest()
        return Score(float(digest[0] % 4 == 0))


@hookimpl
def prime_environments():
    return [EnvironmentSpec("chance", lambda params, context: Environment(), "Chance.")]
"""
BY_TASK = ("--set", 'filters.online=[{use="nonzero_signal",with={by="task"}}]')


def unfinished(run_dir: Path, node: str) -> list[tuple[int, str, int]]:
    """Dispatches of a node without a submission."""
    store = ObjectStore(str(run_dir))
    found = []
    for folder in sorted(run_dir.glob("steps/*/dispatches")):
        step = int(folder.parent.name)
        made = members(store, f"steps/{step:06d}/submissions", step)
        dispatched = members(store, f"steps/{step:06d}/dispatches", step)
        found += [key for key in dispatched if key[1] == node and key not in made]
    return found


def stop_at_work(process: subprocess.Popen[bytes], run_dir: Path, node: str) -> int:
    """Hold a worker between its dispatch and its submission; returns its pid."""
    pid = int((run_dir / "locks" / f"{node}.lock").read_text())
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        assert process.poll() is None
        if unfinished(run_dir, node):
            os.kill(pid, signal.SIGSTOP)
            if unfinished(run_dir, node):
                return pid
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.002)
    raise AssertionError(f"{node} was never at work")


def wait_until_both_trained(process: subprocess.Popen[bytes], run_dir: Path) -> None:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert process.poll() is None, (run_dir.parent / "train.log").read_text()[-3000:]
        rows = OutcomeLog(ObjectStore(str(run_dir))).read() if run_dir.is_dir() else []
        if {row.node for row in rows if row.outcome == "trained"} == {"worker-0", "worker-1"}:
            return
        time.sleep(0.05)
    raise AssertionError("one of two workers contributed nothing")


def test_two_workers_carry_groups_over_and_a_dead_one_isnt_waited_for(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Level 1, max 3; worker-1 dies at work with the supervisor, and is gone after the resume."""
    entry = "[prime_core]\nenvironment.chance = prime_env_chance\n"
    write_distribution(tmp_path / "site", "prime-env-chance", {"prime_env_chance": CHANCE}, entry)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    run_dir = tmp_path / "run"
    config = write_config(
        tmp_path,
        tiny_model,
        steps=12,
        level=1,
        environments='[[environments]]\nuse = "chance"\n',
    )
    options = (*BY_TASK, "--set", "async.max=3", "--set", "engine.groups_per_submission=3")
    with (tmp_path / "train.log").open("wb") as log:
        process = subprocess.Popen(
            command("train", config, *options, "--set", "engine.workers=2"),
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment(),
        )
    wait_until_both_trained(process, run_dir)
    children = psutil.Process(process.pid).children()
    dead = stop_at_work(process, run_dir, "worker-1")
    left_behind = unfinished(run_dir, "worker-1")
    process.kill()
    process.wait()
    psutil.wait_procs(children, timeout=20)
    assert not psutil.pid_exists(dead)

    train(config, *options, "--resume", "--set", "engine.workers=1")
    rows = OutcomeLog(ObjectStore(str(run_dir))).read()
    fates = {
        row.outcome for row in rows if (row.step, row.node, row.submission) in set(left_behind)
    }
    assert fates == {"lost"}
    trained = [row for row in rows if row.outcome == "trained"]
    assert len(trained) == len({(row.group_id, row.sample) for row in trained})
    assert {row.node for row in trained} == {"worker-0", "worker-1"}
    for row in trained:
        assert row.trained_step is not None
        assert row.lag == row.trained_step - row.policy_version
        assert min(row.step, 1) <= row.lag <= 3
        assert 0 <= row.trained_step - row.step <= 2
    carried = {row.group_id for row in trained if row.trained_step != row.step}
    assert carried, "nothing was carried: the test proves nothing"
    total = outcomes(run_dir)["total"]
    assert total["in_flight"] == total["carried"] == 0
    print(f"{len(carried)} groups carried; {total['outcomes']}")
