"""The worker in one process: submissions that pass the checks, restarts, waits, ends."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from worker_runs import Opened, build_model, close, lock_of, prepared, publish, read, receive

from prime_core.api import RunError
from prime_core.config.sections import RunConfig
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.store import layout
from prime_core.store.checks import Limits, check_submission
from prime_core.store.counter import Wait, Work
from prime_core.store.metrics import read_metrics
from prime_core.store.objects import open_store
from prime_core.store.records import Dispatch
from prime_core.store.trace import read_trace


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model(tmp_path_factory.mktemp("model") / "model")


@pytest.fixture(scope="module")
def origin(model: Path, tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """A prepared run that no worker has touched; tests copy it."""
    return prepared(tmp_path_factory.mktemp("origin") / "run", model)


@pytest.fixture
def config(origin: RunConfig, tmp_path: Path) -> RunConfig:
    shutil.copytree(origin.run.dir, tmp_path / "run")
    run = origin.run.model_copy(update={"dir": tmp_path / "run"})
    return origin.model_copy(update={"run": run})


async def until(condition: Callable[[], bool], worker: asyncio.Task[None]) -> None:
    while not condition():
        if worker.done():
            await worker
        await asyncio.sleep(0.02)


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def first_submission(config: RunConfig) -> bytes:
    """Work until submission 0 of step 0 and its statement are there."""
    store = open_store(config)
    signature = layout.submission_signature_path(0, "worker-0", 0)

    async def work() -> None:
        async with Opened(config) as (worker, _):
            task = asyncio.create_task(worker.work())
            await until(lambda: store.exists(signature), task)
            await stopped(task)

    asyncio.run(work())
    return store.get(layout.submission_path(0, "worker-0", 0))


def test_a_submission_is_what_was_dispatched_and_is_repeated_bit_for_bit(
    config: RunConfig,
) -> None:
    store = open_store(config)
    data = first_submission(config)
    dispatch = Dispatch.from_json(store.get(layout.dispatch_path(0, "worker-0", 0)))
    submission = read(store, 0)
    lock = lock_of(store)
    limits = Limits(
        run_id="worker-test",
        lock_digest=lock.digest,
        engine_fingerprint=lock.engine_fingerprint,
        temperature=1.0,
        token_limits={},
        default_token_limit=48,
        max_prompt_tokens=300,
        max_turns=8,
        score_ranges={"arithmetic": (0.0, 1.0), "retry": (0.0, 1.0)},
        vocabulary=2**16,
        node_class="default",
    )
    assert check_submission(submission, dispatch, limits) == []
    assert {row.environment for row in submission.rows} == {"arithmetic", "retry"}
    assert any(len(row.turn_ends) == 2 for row in submission.rows)
    assert len({row.sampling_seed for row in submission.rows}) == 24
    # Killed after the dispatch, or between the submission and its statement: the same bytes.
    signature = store.local_path(layout.submission_signature_path(0, "worker-0", 0))
    path = store.local_path(layout.submission_path(0, "worker-0", 0))
    assert signature is not None
    assert path is not None
    statement = signature.read_bytes()
    signature.unlink()
    assert first_submission(config) == data
    assert signature.read_bytes() == statement
    signature.unlink()
    path.unlink()
    assert first_submission(config) == data
    assert signature.read_bytes() == statement
    assert store.list(layout.dispatches_dir(0)) == ["worker-0-00000.json"]


def test_metrics_and_spans_tell_what_the_worker_did(config: RunConfig) -> None:
    first_submission(config)
    record = next(r for r in read_metrics(config.run.dir) if "tokens_per_s" in r)
    assert record["process"] == "worker-0"
    assert (record["step"], record["rollouts"], record["groups"]) == (0, 24, 6)
    assert record["inference_flops"] > 2 * 90_000 * record["completion_tokens"]
    assert record["host/arithmetic/scores"] + record["host/retry/scores"] == 24
    spans = read_trace(config.run.dir)["worker-0"]
    assert {"load_policy", "generate", "score", "wait"} <= {span["name"] for span in spans}


def test_the_worker_waits_for_receipts_and_versions_and_ends_with_the_run(
    config: RunConfig,
) -> None:
    store = open_store(config)

    async def work() -> None:
        async with Opened(config) as (worker, equipment):
            task = asyncio.create_task(worker.work())
            for step in (0, 1):
                signature = layout.submission_signature_path(step, "worker-0", 0)
                await until(lambda path=signature: store.exists(path), task)  # type: ignore[misc]
                await asyncio.sleep(0.1)
                assert "intake to take in submission 0" in equipment.seeker.look().reason
                groups = receive(store, step)
                await asyncio.sleep(0.1)
                assert store.list(layout.dispatches_dir(step + 1)) == []
                close(store, step, groups)
                publish(config, step + 1)
            await asyncio.wait_for(task, 20)

    asyncio.run(work())
    assert store.list(layout.dispatches_dir(0)) == ["worker-0-00000.json"]
    assert store.list(layout.dispatches_dir(1)) == ["worker-0-00000.json"]
    assert {row.policy_version for row in read(store, 1).rows} == {1}


def in_files_of_two(config: RunConfig) -> RunConfig:
    """Three submissions a step; one and a half fill the engine's batch."""
    engine = config.engine.model_copy(update={"groups_per_submission": 2})
    return config.model_copy(update={"engine": engine})


def let_streams_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine says so; it works them off in turn, so that every bit stays what it was."""
    said = TransformersEngine.capabilities.fget
    assert said is not None

    def shared(engine: TransformersEngine) -> object:
        return replace(said(engine), continuous_batch=24)

    monkeypatch.setattr(TransformersEngine, "capabilities", property(shared))


def test_a_node_killed_with_several_under_way_repeats_each_once(
    config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = in_files_of_two(config)
    store = open_store(config)
    names = [f"worker-0-{n:05d}" for n in range(3)]

    async def work(condition: Callable[[], bool]) -> None:
        async with Opened(config) as (worker, _):
            task = asyncio.create_task(worker.work())
            await until(condition, task)
            await stopped(task)

    def all_there() -> bool:
        return store.exists(layout.submission_signature_path(0, "worker-0", 2))

    with monkeypatch.context() as patch:
        let_streams_share(patch)
        asyncio.run(work(lambda: len(store.list(layout.dispatches_dir(0))) == 3))
        assert not all_there()
    asyncio.run(work(all_there))  # one after the other
    assert store.list(layout.dispatches_dir(0)) == [f"{name}.json" for name in names]
    alone = [store.get(layout.submission_path(0, "worker-0", n)) for n in range(3)]
    for path in (config.run.dir / layout.submissions_dir(0)).iterdir():
        path.unlink()
    let_streams_share(monkeypatch)
    asyncio.run(work(all_there))  # beside each other
    assert [store.get(layout.submission_path(0, "worker-0", n)) for n in range(3)] == alone
    assert {record.get("beside") for record in read_metrics(config.run.dir)} >= {0, 1, 2}


def test_what_is_under_way_is_not_begun_again_and_counts_as_expected(config: RunConfig) -> None:
    config = in_files_of_two(config)

    async def work() -> None:
        async with Opened(config) as (worker, equipment):
            found = await equipment.seeker.seek()
            await worker._load(0)
            assert isinstance(found, Work)
            assert worker._policy is not None
            keys = []
            for n in range(3):
                keys.append(equipment.dispatch(found, worker._policy.digest).key)
                assert keys[-1] == (0, "worker-0", n)
                again = equipment.seeker.look(keys[:-1])
                assert again.key == keys[-1]  # type: ignore[union-attr]
                found = equipment.seeker.look(keys)
                assert isinstance(found, Work) == (n < 2)
            assert isinstance(found, Wait)
            assert "policy version 1" in found.reason

    asyncio.run(work())


def test_work_that_nobody_needs_any_more_is_cancelled_and_never_submitted(
    config: RunConfig,
) -> None:
    store = open_store(config)

    async def work() -> None:
        async with Opened(config) as (worker, equipment):
            found = await equipment.seeker.seek()
            await worker._load(0)
            assert found is not None
            dispatch = equipment.dispatch(found, worker._policy.digest)  # type: ignore
            close(store, 0, [f"0-worker-0-0-{k}" for k in range(6)])
            original = equipment.engine.generate

            async def slowly(requests):  # type: ignore[no-untyped-def]
                await asyncio.sleep(0.6)
                async for generation in original(requests):
                    yield generation

            equipment.engine.generate = slowly  # type: ignore[method-assign]
            equipment.engine._streams = 1  # type: ignore[attr-defined]
            await worker._serve(dispatch)
            assert not equipment.seeker.is_useful(dispatch)

    asyncio.run(work())
    assert store.list(layout.submissions_dir(0)) == []
    assert any(record.get("cancelled") for record in read_metrics(config.run.dir))


def test_a_file_that_somebody_put_under_the_node_s_name_does_not_stop_it(
    config: RunConfig,
) -> None:
    store = open_store(config)
    store.put(layout.submission_path(0, "worker-0", 0), b"foreign")

    async def work() -> None:
        async with Opened(config) as (worker, equipment):
            found = await equipment.seeker.seek()
            assert isinstance(found, Work)
            await worker._load(0)
            assert worker._policy is not None
            dispatch = equipment.dispatch(found, worker._policy.digest)
            assert dispatch.n == 1
            store.put(layout.submission_path(*dispatch.key), b"foreign too")
            await worker._serve(dispatch)

    asyncio.run(work())
    assert any(record.get("foreign_submissions") for record in read_metrics(config.run.dir))


def test_another_engine_than_the_prepared_one_is_refused(config: RunConfig) -> None:
    engine = config.engine.model_copy(update={"params": {"batch_size": 4}})
    other = config.model_copy(update={"engine": engine})

    async def work() -> None:
        async with Opened(other):
            pass

    with pytest.raises(RunError, match="prepared with"):
        asyncio.run(work())
    store = open_store(config)
    path = store.local_path(layout.LOCK)
    assert path is not None
    path.unlink()
    with pytest.raises(RunError, match="isn't prepared"):
        asyncio.run(work())
