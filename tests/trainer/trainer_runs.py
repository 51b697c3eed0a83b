"""Run directories for the trainer's tests, and steps closed on honest rollouts.

Rollouts are drawn from a seeded generator and carry the log-probabilities of the published policy,
so that the batch of a step is a function of (step, published weights) as in a real run.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from trainer_cases import pack_alone

from prime_core.config.sections import RunConfig
from prime_core.signing import Signer
from prime_core.store import policy as policies
from prime_core.store.layout import closed_path, submission_path
from prime_core.store.metrics import read_metrics
from prime_core.store.objects import ObjectStore, open_store
from prime_core.store.records import Closed, ClosedGroup
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import write_submission
from prime_core.trainer.model import load_policy
from prime_core.trainer.packing import Rollout

META = SubmissionMeta("test-run", "0" * 64, "test/1")


def run_config(run_dir: Path, **changes: dict[str, object]) -> RunConfig:
    sections: dict[str, dict[str, object]] = {
        "run": {"id": "test-run", "dir": str(run_dir)},
        "model": {"path": "model"},
        "trainer": {
            "steps": 4,
            "groups_per_step": 4,
            "group_size": 4,
            "lr": 1e-3,
            "warmup_steps": 3,
            "checkpoint_every": 2,
            "pack_tokens": 64,
        },
        "async": {"level": 1},
    }
    for name, values in changes.items():
        sections[name] = {**sections.get(name, {}), **values}
    return RunConfig(environments=[{"use": "arithmetic"}], **sections)  # type: ignore[arg-type]


def make_run(run_dir: Path, model_dir: Path, **changes: dict[str, object]) -> RunConfig:
    config = run_config(run_dir, **changes)
    shutil.copytree(model_dir, run_dir / "model")
    (run_dir / "keys").mkdir()
    Signer.create(run_dir / "keys" / "trainer.key")
    return config


def close_step(config: RunConfig, step: int, *, unscored: bool = False, spoil: float = 1.0) -> None:
    """Write one submission and the step's `closed.json`; needs the version that generates it."""
    store = open_store(config)
    if store.exists(closed_path(step)):
        return
    version = max(0, step - config.async_.level)
    while not policies.is_sealed(store, version):  # it's published beside the training
        time.sleep(0.01)
    path = submission_path(step, "worker-0", 0)
    data = write_submission(list(_rows(config, store, step, version, unscored, spoil)), META)
    store.put(path, data)
    sha256 = hashlib.sha256(data).hexdigest()
    ids = [f"{step}-worker-0-0-{k}" for k in range(config.trainer.groups_per_step)]
    groups = tuple(ClosedGroup(group_id, path, sha256) for group_id in ids)
    store.put(closed_path(step), Closed("test-run", step, groups, version).to_json())


def _rows(config, store: ObjectStore, step: int, version: int, unscored: bool, spoil: float):
    rng = np.random.default_rng(step)
    run_dir = config.run.dir
    with TemporaryDirectory() as scratch:
        signer = Signer.load(run_dir / "keys" / "trainer.key")
        files = policies.fetch_policy(
            store, version, run_dir / "model", Path(scratch), signer_address=signer.address
        )
        model_dir = Path(scratch) / "model"
        model_dir.mkdir()
        shutil.copy(run_dir / "model" / "config.json", model_dir)
        shutil.copy(files.weights[0], model_dir / "model.safetensors")
        policy = load_policy(model_dir, config.engine.temperature)
    for k in range(config.trainer.groups_per_step):
        prompt = rng.integers(0, 40, 3).tolist()
        for sample in range(config.trainer.group_size):
            completion = rng.integers(0, 40, int(rng.integers(1, 7))).tolist()
            tokens = np.asarray(prompt + completion, np.int64)
            trained = np.arange(len(tokens)) >= 3
            one = Rollout(tokens, trained, np.zeros(len(tokens), np.float32), 0.0, version)
            with torch.no_grad():
                logprobs, _ = policy(pack_alone([one]))
            missing = unscored and sample == 0
            score = None if missing else float(sum(completion) % 2)
            yield RolloutRow(
                environment="toy",
                task_id=f"task-{k}",
                group_id=f"{step}-worker-0-0-{k}",
                sample=sample,
                step=step,
                policy_version=version,
                node="worker-0",
                submission=0,
                max_tokens=8,
                prompt_tokens=prompt,
                completion_tokens=completion,
                completion_mask=[True] * len(completion),
                completion_logprobs=[spoil * v for v in logprobs.tolist()],
                finish_reason="stop",
                length_budget=None,
                sampling_seed=0,
                temperature=config.engine.temperature,
                score=score,
                score_status="error" if missing else "scored",
                reward=score,
                reward_parts={} if missing else {"task": score},
                proofs=b"",
                policy_digest=files.digest,
                turn_ends=[len(completion)],
            )


def shard_hashes(config: RunConfig) -> dict[int, list[str]]:
    """Hashes of the published weights by version; they say nothing of keys or nonces."""
    store = open_store(config)
    return {
        version: [shard.blake3.hex() for shard in policies.read_manifest(store, version).shards]
        for version in policies.sealed_versions(store)
    }


def play(config: RunConfig, *, dies_at: int | None = None, **closing: object) -> None:
    """Run the trainer in this process; each step is closed just before it's asked for.

    At step `dies_at` it is interrupted instead. `closing` goes to `close_step`.
    """
    from prime_core.trainer import batch, train

    wait = batch.wait_closed

    def close_then_wait(store, step, *rest, **named):
        if step == dies_at:
            raise KeyboardInterrupt
        close_step(config, step, **closing)
        return wait(store, step, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "wait_closed", close_then_wait)
        if dies_at is None:
            train.run(config)
        else:
            with pytest.raises(KeyboardInterrupt):
                train.run(config)


def trainer_records(config: RunConfig) -> list[dict]:
    found = read_metrics(config.run.dir)
    return [one for one in found if one["process"] == "trainer" and "reward/mean" in one]


if __name__ == "__main__":
    from prime_core.trainer import train

    ranks, steps = int(sys.argv[2]), int(sys.argv[3])
    train.run(run_config(Path(sys.argv[1]), trainer={"ranks": ranks, "steps": steps}))
