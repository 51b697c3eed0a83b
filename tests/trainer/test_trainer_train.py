from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import pytest
from trainer_runs import make_run, play, shard_hashes, trainer_records

from prime_core.api.errors import RunError
from prime_core.config.sections import RunConfig
from prime_core.store import policy as policies
from prime_core.store.metrics import read_metrics
from prime_core.store.objects import open_store
from prime_core.store.trace import read_trace
from prime_core.trainer import checkpoint, train
from prime_core.trainer.checkpoint import checkpoints


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_CORE_OFFLINE", "1")


@pytest.fixture(scope="module")
def whole_run(tiny_dir, tmp_path_factory) -> RunConfig:
    """A run that nothing interrupted."""
    config = make_run(tmp_path_factory.mktemp("whole") / "run", tiny_dir)
    play(config)
    return config


def test_a_run_seals_every_version_and_every_version_differs(whole_run) -> None:
    hashes = shard_hashes(whole_run)
    assert sorted(hashes) == [0, 1, 2, 3, 4]
    assert len({tuple(one) for one in hashes.values()}) == 5
    assert checkpoints(whole_run.run.dir) == [2, 4]
    served = sorted(p.name for p in (whole_run.run.dir / "served").iterdir())
    assert served == ["000004.safetensors"]


def test_version_zero_is_the_start_model(whole_run, tiny_dir, tmp_path) -> None:
    from safetensors.torch import load_file

    store = open_store(whole_run)
    address = policies.read_manifest(store, 0).signer
    files = policies.fetch_policy(store, 0, tiny_dir, tmp_path, signer_address=address)
    ours, start = load_file(files.weights[0]), load_file(tiny_dir / "model.safetensors")
    assert ours.keys() == start.keys()
    assert all(bool((ours[name] == start[name]).all()) for name in start)


def test_metrics_tell_mismatch_drift_lag_and_time_apart(whole_run) -> None:
    records = trainer_records(whole_run)
    assert [one["step"] for one in records] == [0, 1, 2, 3]
    assert all(one["mismatch/kl"] < 1e-8 for one in records)
    assert [one["drift/kl"] > 0 for one in records] == [False, True, True, True]
    assert [one["lag/max"] for one in records] == [0, 1, 1, 1]
    assert records[2]["lag/1"] == 16
    for one in records:
        assert one["reward/mean"] == one["reward/env/toy"] == one["reward/part/toy/task"]
        assert one["time/idle_s"] >= 0
        assert one["time/busy_s"] > 0
        assert one["flops/train"] > one["flops/logprobs"] > 0
        assert one["tokens/packed"] > 0
    assert records[0]["optimizer/lr"] == pytest.approx(1e-3 * 2 / 3)
    spans = {one["name"] for one in read_trace(whole_run.run.dir)["trainer"]}
    assert {"wait", "logprobs", "train", "optimizer", "publish"} <= spans


def test_an_interrupted_run_equals_an_uninterrupted_one_bit_for_bit(
    whole_run, tiny_dir, tmp_path, monkeypatch
) -> None:
    config = make_run(tmp_path / "run", tiny_dir)
    play(config, dies_at=3)  # after the checkpoint of step 2 and version 3
    assert checkpoints(config.run.dir) == [2]
    play(config)
    assert shard_hashes(config) == shard_hashes(whole_run)
    records = {one["step"]: one for one in trainer_records(config)}
    for one in trainer_records(whole_run):
        again = records[one["step"]]
        assert again["loss/mean"] == one["loss/mean"]
        assert again["optimizer/grad_norm"] == one["optimizer/grad_norm"]
        assert again["mismatch/kl"] == one["mismatch/kl"]
        assert again["publish/differs"] == 0


def test_a_finished_run_started_again_trains_and_publishes_nothing(whole_run, monkeypatch) -> None:
    before = shard_hashes(whole_run), len(read_metrics(whole_run.run.dir))
    play(whole_run)
    assert (shard_hashes(whole_run), len(read_metrics(whole_run.run.dir))) == before


def test_a_half_published_version_is_finished_from_the_file_on_disk(
    whole_run, tiny_dir, tmp_path, monkeypatch
) -> None:
    config = make_run(tmp_path / "run", tiny_dir)
    real = policies.write_policy

    def write_then_die(store, version, *rest, **named):
        if version == 3:
            raise KeyboardInterrupt
        return real(store, version, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(policies, "write_policy", write_then_die)
        play(config, dies_at=99)
    assert 3 not in shard_hashes(config)
    assert (config.run.dir / "served" / "000003.safetensors").exists()
    play(config, dies_at=2)  # sealed before anything is trained again
    assert shard_hashes(config)[3] == shard_hashes(whole_run)[3]
    play(config)
    assert shard_hashes(config) == shard_hashes(whole_run)


def test_other_weights_than_the_sealed_ones_are_said_loudly_and_never_published(
    whole_run, tiny_dir, tmp_path, monkeypatch, caplog
) -> None:
    config = make_run(tmp_path / "run", tiny_dir, trainer={"steps": 1})
    play(config)
    sealed = shard_hashes(config)
    shutil.rmtree(config.run.dir / "checkpoints")
    other = make_run(tmp_path / "other", tiny_dir, trainer={"steps": 1, "lr": 2e-3})
    config = config.model_copy(update={"trainer": other.trainer})
    play(config)
    assert "other bits" in caplog.text
    assert shard_hashes(config) == sealed
    assert trainer_records(config)[-1]["publish/differs"] == 1


def test_weights_of_old_versions_are_dropped_but_not_those_a_resume_needs(
    tiny_dir, tmp_path
) -> None:
    config = make_run(
        tmp_path / "run",
        tiny_dir,
        trainer={"steps": 7, "checkpoint_every": 3},
        store={"keep_policies": 3},
    )
    policy = config.run.dir / "policies"

    def held() -> list[int]:
        return sorted(int(shard.parent.name) for shard in policy.glob("*/weights.safetensors"))

    play(config, dies_at=5)
    assert held() == [0, 2, 3, 4, 5]  # checkpoint 3 trains a batch of version 2 again
    play(config)
    assert held() == [0, 5, 6, 7]
    assert sorted(shard_hashes(config)) == list(range(8))
    assert all(one["publish/differs"] == 0 for one in trainer_records(config))


def test_a_damaged_checkpoint_is_named_with_the_way_out(tiny_dir, tmp_path, monkeypatch) -> None:
    config = make_run(tmp_path / "run", tiny_dir, trainer={"steps": 2})
    play(config)
    directory = config.run.dir / "checkpoints" / "000002"
    for file in directory.glob("*.distcp"):
        file.write_bytes(b"")
    with pytest.raises(RunError, match="remove this directory"):
        train.run(config)


def test_unscored_rollouts_leave_the_batch_and_its_baseline(tiny_dir, tmp_path) -> None:
    config = make_run(tmp_path / "run", tiny_dir, trainer={"steps": 1})
    play(config, unscored=True)
    (record,) = trainer_records(config)
    assert record["batch/unscored"] == 0.25
    assert record["batch/rollouts"] == 12


def test_an_engine_that_disagrees_stops_the_run_before_it_trains(tiny_dir, tmp_path) -> None:
    config = make_run(tmp_path / "run", tiny_dir)
    with pytest.raises(RunError, match="temperature"):
        play(config, spoil=0.5)
    assert sorted(shard_hashes(config)) == [0]


def test_kl_and_recomputed_activations_and_bfloat16_train(tiny_dir, tmp_path, monkeypatch) -> None:
    config = make_run(
        tmp_path / "run",
        tiny_dir,
        trainer={"param_dtype": "bfloat16", "activation_checkpointing": True, "steps": 3,
                 "max_mismatch_kl": 0.5},
        loss={"kl_coef": 0.01, "entropy_coef": 0.01},
        model={"dtype": "bfloat16"},
    )  # fmt: skip
    play(config)
    records = trainer_records(config)
    assert records[0]["policy/kl_reference"] < records[2]["policy/kl_reference"]
    assert len(shard_hashes(config)) == 4


def test_more_ranks_than_one_become_torchrun(tmp_path, monkeypatch) -> None:
    from trainer_runs import run_config

    seen: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> None:
        seen.append(arguments)
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(SystemExit):
        train.run(run_config(tmp_path, trainer={"ranks": 2}))
    assert seen[0][1:6] == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    assert seen[0][6:10] == ["-m", "prime_core", "trainer", str(tmp_path / "run.toml")]


def test_a_full_disk_ends_the_checkpoint_with_its_reason(tmp_path, monkeypatch) -> None:
    from torch.distributed.checkpoint.api import CheckpointException

    def fail(*_: object) -> None:
        raise CheckpointException("write", {0: (OSError(28, "No space left on device"), [])})

    monkeypatch.setattr(checkpoint, "_state", lambda *_: {})
    monkeypatch.setattr(checkpoint, "_quietly", fail)
    monkeypatch.setattr(checkpoint, "barrier", lambda _: None)
    world = SimpleNamespace(leads=True, rank=0, size=1)
    with pytest.raises(RunError, match=r"can't be written: .*No space left(.|\n)*free disk space"):
        checkpoint.save_checkpoint(tmp_path, 2, None, None, world, 2)
    assert checkpoint.checkpoints(tmp_path) == []
