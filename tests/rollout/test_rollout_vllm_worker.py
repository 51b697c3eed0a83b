"""A worker whose vLLM is killed in mid-batch, with two submissions under way.

It says so, and submits what it would have.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_rollout_worker import stopped, until
from vllm_support import START_S, vllm_python
from worker_runs import Opened, build_model, prepared, read

from prime_core.config.sections import RunConfig
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.store import layout
from prime_core.store.metrics import read_metrics
from prime_core.store.objects import open_store
from prime_core.store.submission import RolloutRow

pytestmark = [pytest.mark.vllm, pytest.mark.integration]

TOLD = (
    *("group_id", "sample", "task_id", "sampling_seed", "completion_tokens", "completion_mask"),
    *("turn_ends", "finish_reason", "score", "reward"),
)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """A prepared run on vLLM with commitments; vLLM's attention on CPUs wants heads of 32."""
    python = vllm_python()
    params: dict[str, Any] = {"batch_size": 16, "start_timeout_s": START_S}
    if python is not None:
        params["python"] = str(python)
    root = tmp_path_factory.mktemp("vllm-run")
    engine = {
        "use": "vllm",
        "max_tokens": 48,
        "max_prompt_tokens": 300,
        "groups_per_submission": 3,
        "with": params,
    }
    return prepared(
        root / "run",
        build_model(root / "model", heads=2),
        engine=engine,
        run={"trust": "validate"},
    )


def strike_once_both_are_begun(engine: VllmEngine) -> None:
    arrivals, struck = engine._driver._under_way, []
    take = arrivals.tokens

    def tokens(news: Sequence[Sequence[Any]], data: bytes) -> None:
        if not struck:
            while len(engine._streams) < 2:  # in the driver's thread: the worker goes on
                time.sleep(0.01)
            assert engine.pid is not None
            struck.append(engine.pid)
            os.kill(engine.pid, signal.SIGKILL)
        take(news, data)

    arrivals.tokens = tokens  # type: ignore[method-assign]


def submitted(
    origin: RunConfig, folder: Path, *, strike: bool
) -> tuple[RunConfig, list[RolloutRow]]:
    """A copy of the run, and the rows of its first step's two submissions."""
    shutil.copytree(origin.run.dir, folder)
    config = origin.model_copy(
        update={"run": origin.run.model_copy(update={"dir": folder, "id": "worker-test"})}
    )
    store = open_store(config)
    signature = layout.submission_signature_path(0, "worker-0", 1)

    async def work() -> None:
        async with Opened(config) as (worker, equipment):
            assert isinstance(equipment.engine, VllmEngine)
            if strike:
                strike_once_both_are_begun(equipment.engine)
            task = asyncio.create_task(worker.work())
            await until(lambda: store.exists(signature), task)
            await until(lambda: len(logged(folder)) == 2, task)
            await stopped(task)

    asyncio.run(work())
    return config, [row for n in (0, 1) for row in read(store, 0, n=n).rows]


def logged(folder: Path) -> list[dict[str, Any]]:
    return [record for record in read_metrics(folder) if "rollouts" in record]


def told(row: RolloutRow) -> list[Any]:
    """What a row says that rounding doesn't touch."""
    return [getattr(row, name) for name in TOLD]


def test_a_worker_whose_vllm_is_killed_submits_what_it_would_have(
    origin: RunConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        config, disturbed = submitted(origin, tmp_path / "killed", strike=True)
    assert "was killed by signal 9" in caplog.text
    assert "starting it anew" in caplog.text
    assert [record["submission"] for record in logged(config.run.dir)] == [0, 1]
    assert logged(config.run.dir)[1]["beside"] == 1
    assert logged(config.run.dir)[1]["engine/restarts"] == 1
    names = [f"worker-0-{n:05d}.json" for n in (0, 1)]
    assert open_store(config).list(layout.dispatches_dir(0)) == names
    _, undisturbed = submitted(origin, tmp_path / "whole", strike=False)
    assert len(disturbed) == 24
    assert [told(row) for row in disturbed] == [told(row) for row in undisturbed]
    for row in disturbed:
        own = sum(row.completion_mask)
        assert len(row.proofs) == -(-own // 32) * 258
