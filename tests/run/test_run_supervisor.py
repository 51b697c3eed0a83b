"""Claiming a run directory: what a resumed run may and may not change."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from prime_core.api.errors import RunError
from prime_core.config.load import LoadedConfig, load, load_run
from prime_core.run import preparing
from prime_core.run.lifeline import RoleLock
from prime_core.run.supervisor import claim, supervise, time_limit
from prime_core.signing import Signer
from prime_core.store.objects import open_store
from prime_core.store.policy import write_policy

CONFIG = """\
[run]
dir = "runs/one"

[model]
path = "model"

[[environments]]
use = "arithmetic"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(*overrides: str) -> LoadedConfig:
    return load(Path("config.toml"), overrides, check_files=False)


def test_a_run_with_relative_paths_resumes(folder: Path) -> None:
    first = claim(loaded(), resume=False)
    again = claim(loaded(), resume=True)
    assert first.config == again.config
    assert again.config.model.path == str(folder / "model")
    assert again.config.run.dir == folder / "runs" / "one"


def test_the_run_id_is_drawn_once(folder: Path) -> None:
    first = claim(loaded(), resume=False).config.run.id
    assert first
    assert claim(loaded(), resume=True).config.run.id == first
    with pytest.raises(RunError, match=r"differs from the run's own in run\.id"):
        claim(loaded('run.id="other"'), resume=True)


def test_a_resumed_run_may_be_longer_but_not_another_one(folder: Path) -> None:
    claim(loaded(), resume=False)
    longer = claim(loaded("trainer.steps=200", "engine.workers=2"), resume=True)
    assert longer.config.trainer.steps == 200
    with pytest.raises(RunError, match=r"model\.path, trainer\.lr"):
        claim(loaded('model.path="other"', "trainer.lr=0.5"), resume=True)


def test_a_second_supervisor_leaves_the_config_of_the_run_alone(folder: Path) -> None:
    run_dir = claim(loaded(), resume=False).config.run.dir
    before = (run_dir / "run.toml").read_bytes()
    with (
        RoleLock(run_dir, "supervisor"),
        pytest.raises(RunError, match=r"another process .* holds this role"),
    ):
        supervise(loaded("trainer.steps=200"), resume=True)
    assert (run_dir / "run.toml").read_bytes() == before


def test_two_that_start_one_run_at_once_do_not_mix(folder: Path) -> None:
    run_dir = folder / "runs" / "one"
    with (
        RoleLock(run_dir, "supervisor"),
        pytest.raises(RunError, match=r"another process .* holds this role"),
    ):
        supervise(loaded(), resume=False)
    assert not (run_dir / "run.toml").exists()
    claim(loaded(), resume=False)  # whoever got the lock and died before this left a lock alone


def test_a_run_directory_that_cannot_be_made_is_refused(folder: Path) -> None:
    (folder / "runs").write_text("a file")
    with pytest.raises(RunError, match="can't be made: Not a directory"):
        supervise(loaded(), resume=False)


def test_a_missing_extra_is_named_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "find_spec", lambda name: None if name == "torch" else name)
    with pytest.raises(RunError, match=r"torch isn't installed(.|\n)*prime-core\[train\]"):
        supervise(loaded(), resume=False)
    assert not (folder / "runs").exists()


def test_a_copied_run_is_the_one_beside_its_config(folder: Path) -> None:
    first = claim(loaded(), resume=False).config.run.dir
    shutil.copytree(first, folder / "copy")
    assert load_run(folder / "copy" / "run.toml").run.dir == folder / "copy"
    assert load_run(Path("copy/run.toml")).run.dir == folder / "copy"


def test_a_run_directory_that_cannot_be_written_is_refused(folder: Path) -> None:
    run_dir = claim(loaded(), resume=False).config.run.dir
    (run_dir / "locks").write_text("")  # as good as a read-only disk, for root too
    with pytest.raises(RunError, match="can't be written"):
        supervise(loaded(), resume=True)


def test_a_directory_name_with_a_nul_is_refused(folder: Path) -> None:
    with pytest.raises(RunError, match="can't be made"):
        supervise(loaded('run.dir="r\\u0000n"'), resume=False)


def test_a_run_is_out_of_time_once_a_trained_version_is_sealed(folder: Path) -> None:
    config = claim(loaded(), resume=False).config
    store = open_store(config)
    weights = folder / "w.safetensors"
    head = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    weights.write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * 4)
    late, early = time.monotonic() - 1, time.monotonic() + 3600
    run_id, signer = str(config.run.id), Signer(b"\x01" * 32)
    seal = write_policy(store, 0, None, run_id, weights, signer)
    assert not time_limit(config, late)(), "version 0 is trained by nobody"
    write_policy(store, 1, seal.digest, run_id, weights, signer)
    assert time_limit(config, late)()
    assert not time_limit(config, early)()
    assert not time_limit(config, None)()
