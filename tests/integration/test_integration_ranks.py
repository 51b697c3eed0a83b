"""The trainer on two ranks under the supervisor: same policies, a killed rank, nothing left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from integration_support import command, environment, outcomes, steps_of, train, write_config
from safetensors.numpy import load

from prime_core.store.objects import ObjectStore
from prime_core.store.policy import sealed_versions

pytestmark = pytest.mark.integration

STEPS = 3  # at level 2 all work is version 0's: both runs train the same batches
# Ranks sum the same gradients in another order, which float32 rounds otherwise; Adam divides by
# their size. Measured: 1.1e-6 after three steps of learning rate 1e-3.
TOLERANCE = 2e-5


def weights(run_dir: Path, version: int) -> dict[str, np.ndarray]:
    return load((run_dir / "policies" / f"{version:06d}" / "weights.safetensors").read_bytes())


def family(supervisor: int) -> dict[int, psutil.Process]:
    """The supervisor's descendants that live now."""
    try:
        return {each.pid: each for each in psutil.Process(supervisor).children(recursive=True)}
    except psutil.NoSuchProcess:
        return {}


def ranks(processes: dict[int, psutil.Process]) -> dict[int, int]:
    """Rank to pid of the trainer's ranks."""
    found = {}
    for pid, process in processes.items():
        try:
            words, variables = process.cmdline(), process.environ()
        except psutil.Error:
            continue
        if re.search(r"prime_core trainer ", " ".join(words)) and "LOCAL_RANK" in variables:
            found[int(variables["LOCAL_RANK"])] = pid
    return found


def test_two_ranks_survive_a_kill_and_train_what_one_rank_trains(
    tiny_model: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    # several micro-batches a rank, so that their sums are in another order than one rank's
    packs = ("--set", "trainer.pack_tokens=32")
    train(write_config(one, tiny_model, steps=STEPS), *packs)
    config = write_config(two, tiny_model, steps=STEPS)
    with (two / "train.log").open("wb") as log:
        process = subprocess.Popen(
            command("train", config, *packs, "--set", "trainer.ranks=2"),
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment(),
        )
    seen = see_through_a_kill(process, two)
    log_text = (two / "train.log").read_text()
    assert process.returncode == 0, log_text[-3000:]
    assert "restarting" in log_text, "the trainer ended with its rank, and was started again"
    _, alive = psutil.wait_procs(list(seen.values()), timeout=5)
    assert alive == []
    compare(two / "run", one / "run")


def see_through_a_kill(process: subprocess.Popen[bytes], folder: Path) -> dict[int, psutil.Process]:
    """Kill rank 1 after the first step, wait for the end; every process that was seen."""
    seen: dict[int, psutil.Process] = {}
    killed = None
    deadline = time.monotonic() + 300
    while process.poll() is None:
        assert time.monotonic() < deadline, (folder / "train.log").read_text()[-3000:]
        now = family(process.pid)
        seen |= now
        sealed = (folder / "run" / "policies" / "000001" / "seal.json").exists()
        if killed is None and sealed and (killed := ranks(now).get(1)) is not None:
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.05)
    assert killed is not None, "no rank was killed: the test proves nothing"
    return seen


def compare(two: Path, one: Path) -> None:
    """Two run directories: the same batches, and weights within the tolerance."""
    assert sealed_versions(ObjectStore(str(two))) == list(range(STEPS + 1))
    assert outcomes(two)["total"]["outcomes"] == outcomes(one)["total"]["outcomes"]
    ours, theirs = ({record["step"]: record for record in steps_of(run)} for run in (two, one))
    for step in range(STEPS):
        assert ours[step]["tokens/trained"] == theirs[step]["tokens/trained"]
        assert ours[step]["mismatch/kl"] < 1e-9
        assert ours[step]["loss/mean"] == pytest.approx(theirs[step]["loss/mean"], abs=1e-5)
    far = {}
    for version in range(STEPS + 1):
        mine, other = weights(two, version), weights(one, version)
        assert mine.keys() == other.keys()
        far[version] = max(float(np.abs(mine[name] - other[name]).max()) for name in mine)
    print(f"largest difference of a weight by version: {far}")
    assert far[0] == 0
    assert max(far.values()) < TOLERANCE
