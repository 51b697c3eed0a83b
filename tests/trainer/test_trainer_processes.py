"""The trainer in processes of its own: killed, and on two ranks."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trainer_runs import close_step, make_run, play, shard_hashes, trainer_records

from prime_core.config.sections import RunConfig
from prime_core.store import policy as policies
from prime_core.store.objects import open_store
from prime_core.trainer.checkpoint import checkpoints

pytestmark = pytest.mark.integration
SCRIPT = Path(__file__).with_name("trainer_runs.py")


@pytest.fixture(scope="module")
def whole_run(tiny_dir, tmp_path_factory) -> RunConfig:
    """A run that nothing interrupted, in this process."""
    config = make_run(tmp_path_factory.mktemp("whole") / "run", tiny_dir)
    play(config)
    return config


def start(config: RunConfig, ranks: int = 1) -> subprocess.Popen[bytes]:
    launcher = [sys.executable]
    if ranks > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    arguments = [str(SCRIPT), str(config.run.dir), str(ranks), str(config.trainer.steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (config.run.dir / "trainer.log").open("ab") as log:
        return subprocess.Popen([*launcher, *arguments], env=environment, stdout=log, stderr=log)


def feed(config: RunConfig, process: subprocess.Popen[bytes], until: int, limit_s: float) -> None:
    """Close steps as their versions appear, until a version is sealed or the process ends."""
    store, deadline = open_store(config), time.monotonic() + limit_s
    for step in range(config.trainer.steps):
        while not policies.is_sealed(store, max(0, step - config.async_.level)):
            assert not process.poll(), (config.run.dir / "trainer.log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the trainer hangs"
            time.sleep(0.02)
        close_step(config, step)
        if step >= until:
            return


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_a_killed_trainer_started_again_publishes_the_same_bits(
    whole_run, tiny_dir, tmp_path, kills
) -> None:
    """SIGKILL at moments that differ from run to run; the batches are the uninterrupted run's."""
    moments = random.Random(time.time_ns())
    config = make_run(tmp_path / "run", tiny_dir)
    for _ in range(kills):
        killed = start(config)
        feed(config, killed, until=moments.randint(0, 3), limit_s=120)
        time.sleep(moments.uniform(0.0, 0.3))
        killed.kill()
        killed.wait()
    last = start(config)
    feed(config, last, until=3, limit_s=120)
    assert last.wait(120) == 0, (config.run.dir / "trainer.log").read_text()[-3000:]
    assert shard_hashes(config) == shard_hashes(whole_run)


def test_two_ranks_resume_what_one_rank_began_and_train_the_same(
    whole_run, tiny_dir, tmp_path
) -> None:
    """The weights at the start are the same bits; gradients are summed in another order."""
    config = make_run(tmp_path / "run", tiny_dir)
    play(config, dies_at=2)
    assert checkpoints(config.run.dir) == [2]
    process = start(config, ranks=2)
    feed(config, process, until=3, limit_s=180)
    assert process.wait(180) == 0, (config.run.dir / "trainer.log").read_text()[-3000:]
    ours, theirs = trainer_records(config), trainer_records(whole_run)
    assert [one["step"] for one in ours] == [0, 1, 2, 3]
    assert "other bits" not in (config.run.dir / "trainer.log").read_text()
    for one, other in zip(ours, theirs, strict=True):
        assert one["tokens/trained"] == other["tokens/trained"]
        assert one["mismatch/kl"] < 1e-8
    for key in ("loss/mean", "optimizer/grad_norm", "policy/entropy", "drift/kl"):
        assert ours[2][key] == pytest.approx(theirs[2][key], rel=1e-4, abs=1e-6), key
    assert checkpoints(config.run.dir) == [2, 4]
