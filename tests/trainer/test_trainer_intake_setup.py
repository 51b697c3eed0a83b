"""The intake process as the config, lock and task lists of a prepared run make it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from intake_world import EQUAL, MIXED, Scores, World
from safetensors.numpy import save_file

from prime_core.api.errors import IntegrityError, RunError, StoreError
from prime_core.config.sections import RunConfig
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.metrics import read_metrics
from prime_core.store.objects import ObjectStore, open_store
from prime_core.store.outcomes import OutcomeLog, balance
from prime_core.store.policy import read_seal, write_policy
from prime_core.store.records import Lock, TaskList
from prime_core.store.schema import SubmissionMeta
from prime_core.store.submission import write_submission
from prime_core.store.trace import read_trace
from prime_core.trainer import intake
from prime_core.trainer.intake_setup import open_tools

HEX = "ab" * 32
LABEL = "sums"


def run_config(run_dir: Path, **changes: Any) -> RunConfig:
    sections: dict[str, Any] = {
        "run": {"id": "run-1", "dir": str(run_dir)},
        "model": {"path": "model"},
        "engine": {"max_tokens": 16, "max_prompt_tokens": 8, "groups_per_submission": 3},
        "trainer": {"steps": 1, "groups_per_step": 2, "group_size": 4},
        "async": {"level": 0},
        "filters": {"online": [{"use": "nonzero_signal"}]},
        "environments": [{"use": "arithmetic", "name": LABEL}],
    }
    return RunConfig(**{**sections, **changes})


def prepare(config: RunConfig) -> tuple[ObjectStore, Lock]:
    store = open_store(config)
    tasks = TaskList.build(LABEL, HEX, 9, [1, 5], ["task-1", "task-5"], (0.0, 1.0))
    store.put(layout.tasks_path(LABEL), tasks.to_json())
    lock = Lock("run-1", (), {}, {LABEL: tasks.digest}, "engine-1", {}, HEX, HEX)
    store.put(layout.LOCK, lock.to_json())
    store.put(f"{layout.MODEL}/config.json", b'{"vocab_size": 100}')
    return store, lock


def publish(store: ObjectStore, version: int, scratch: Path) -> None:
    keys = scratch / "keys"
    keys.mkdir(exist_ok=True)
    key = keys / "trainer.key"
    signer = Signer.load(key) if key.exists() else Signer.create(key)
    weights = scratch / f"{version}.safetensors"
    save_file({"w": np.full(4, version, np.float32)}, weights)
    parent = read_seal(store, version - 1) if version else None
    write_policy(store, version, parent, "run-1", weights, signer)


def submit(config: RunConfig, store: ObjectStore, lock: Lock, n: int, groups: list[Scores]) -> None:
    world = World(StepRules.from_config(config))
    world.outside, world.assigner = store, open_tools(config).assigner
    seal = read_seal(store, 0).hex()
    dispatch = world.dispatch(0, n, policy_digest=seal, groups=len(groups))
    world.announce(dispatch)
    meta = SubmissionMeta("run-1", lock.digest, "engine-1")
    world.put(dispatch, write_submission(world.rows(dispatch, groups), meta))


def test_the_process_closes_a_run_and_ends_with_it(tmp_path: Path) -> None:
    config = run_config(tmp_path / "run")
    store, lock = prepare(config)
    publish(store, 0, tmp_path)
    submit(config, store, lock, 0, [MIXED, EQUAL])
    thread = threading.Thread(target=intake.run, args=(config,))
    thread.start()
    submit(config, store, lock, 1, [MIXED])
    deadline = time.monotonic() + 60
    while not store.exists(layout.closed_path(0)):
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    publish(store, 1, tmp_path)
    thread.join(60)
    assert not thread.is_alive()
    found = balance(store)
    assert found.holds
    assert found.total.outcomes == {"trained": 8, "zero_signal": 4}
    assert {row.task_id for row in OutcomeLog(store).read()} <= {"task-1", "task-5"}
    logged = read_metrics(config.run.dir)
    assert sum(record.get("intake/groups", 0) for record in logged) == 3
    assert sum(record.get("intake/equal_reward_groups", 0) for record in logged) == 1
    names = [record["name"] for record in read_trace(config.run.dir)["intake"]]
    assert sorted(names) == ["closed", "intake", "intake"]


def test_a_directory_that_isnt_prepared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"lock\.json"):
        open_tools(run_config(tmp_path))


def test_a_lock_of_another_run_is_refused(tmp_path: Path) -> None:
    config = run_config(tmp_path)
    prepare(config)
    other = run_config(tmp_path, run={"id": "run-2", "dir": str(tmp_path)})
    with pytest.raises(IntegrityError, match=r"run-1.*run-2"):
        open_tools(other)


def test_task_lists_that_the_lock_doesnt_name_are_refused(tmp_path: Path) -> None:
    config = run_config(tmp_path)
    prepare(config)
    path = tmp_path / layout.tasks_path(LABEL)
    path.unlink()
    path.write_bytes(TaskList.build(LABEL, HEX, 9, [1], ["task-1"], (0, 1)).to_json())
    with pytest.raises(IntegrityError, match="sums"):
        open_tools(config)


def test_a_filter_of_tasks_is_no_online_filter(tmp_path: Path) -> None:
    config = run_config(tmp_path, filters={"online": [{"use": "pass_rate_band"}]})
    prepare(config)
    with pytest.raises(RunError, match="keep_group"):
        open_tools(config)
