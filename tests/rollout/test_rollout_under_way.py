"""Submissions beside each other: the engine's batch stays full, and nothing else changes."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from shared_batch import GROUP_SIZE, LONG, SHORT, Script, SharedBatch, Tools

from prime_core.api import EngineError
from prime_core.rollout import worker as worker_module
from prime_core.rollout.under_way import MOST_UNSENT
from prime_core.rollout.worker import Worker
from prime_core.store.counter import Work
from prime_core.store.schema import check_rows
from prime_core.store.trace import read_trace

PLACES = 4


def run(tools: Tools) -> None:
    async def work() -> None:
        await Worker(tools).work()  # type: ignore[arg-type]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())
    tools.trace.close()


def works(count: int, *, step: int = 0, version: int = 0, groups: int = 1) -> list[Work]:
    return [Work(step, version, groups) for _ in range(count)]


def test_the_batch_stays_full_from_submission_to_submission(tmp_path: Path) -> None:
    engine = SharedBatch(PLACES)
    tools = Tools(engine, Script(works(12)), tmp_path)
    run(tools)
    last_begun = max(engine.begun_at.values())
    assert engine.occupied[:last_begun] == [PLACES] * last_begun
    tokens = 12 * (LONG + (GROUP_SIZE - 1) * SHORT)
    assert sum(engine.occupied) == tokens
    # What is left are the last long ones, which nobody can fill up.
    assert len(engine.occupied) <= tokens / PLACES + LONG


def test_the_batch_stays_full_while_environments_answer(tmp_path: Path) -> None:
    """All turns of a submission wait for the longest one of them; the places don't."""
    engine = SharedBatch(PLACES)
    tools = Tools(engine, Script(works(12)), tmp_path, turns=2)
    run(tools)
    last_begun = max(engine.begun_at.values())
    assert engine.occupied[:last_begun] == [PLACES] * last_begun
    for rows in tools.rows.values():
        check_rows(rows)
        assert [len(row.turn_ends) for row in rows] == [2] * GROUP_SIZE


def test_an_engine_that_shares_no_batch_is_given_one_submission_at_a_time(tmp_path: Path) -> None:
    drained, fed = SharedBatch(PLACES, shares=False), SharedBatch(PLACES)
    one = Tools(drained, Script(works(6)), tmp_path / "one")
    other = Tools(fed, Script(works(6)), tmp_path / "other")
    run(one)
    run(other)
    assert len(drained.occupied) == 6 * LONG
    assert one.seeker.under_way == []  # it asks for more when nothing is under way
    # The same rows come of both, announced in the same order.
    assert one.rows == other.rows
    assert one.submitted == other.submitted


def test_submissions_are_announced_in_their_order_whichever_is_complete_first(
    tmp_path: Path,
) -> None:
    engine = SharedBatch(8, length=lambda request: 90 if request.id == "0-worker-0-0-0/0" else 3)
    tools = Tools(engine, Script([*works(3), *works(2, step=1)]), tmp_path)
    run(tools)
    assert engine.ended[-1] == "0-worker-0-0-0/0"
    assert tools.submitted == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    for rows in tools.rows.values():
        check_rows(rows)
    spans = [span for span in read_trace(tmp_path)["worker-0"] if span["name"] == "generate"]
    assert spans[-1]["lane"] == "main"
    assert all(span["lane"].startswith("beside") for span in spans[:-1])


def test_weights_are_loaded_between_batches(tmp_path: Path) -> None:
    engine = SharedBatch(PLACES)
    tools = Tools(engine, Script([*works(2), *works(2, step=1, version=1)]), tmp_path)
    run(tools)
    assert engine.loads == [0, 1]  # it refuses one while anything is under way
    assert {row.policy_version for row in tools.rows[0, 1]} == {0}
    assert {row.policy_version for row in tools.rows[1, 0]} == {1}
    drained = engine.begun_at["1-worker-0-0-0"]
    assert engine.occupied[drained - 1] == 1
    assert [each["beside"] for each in tools.logged] == [0, 1, 0, 1]


def test_a_submission_that_nobody_needs_makes_room_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "WATCH_S", 0.0)
    engine = SharedBatch(PLACES, length=lambda request: 50)
    seeker = Script(
        works(3), useless=lambda dispatch: dispatch.n == 0 and len(engine.occupied) >= 10
    )
    tools = Tools(engine, seeker, tmp_path)
    run(tools)
    assert tools.submitted == [(0, 1), (0, 2)]
    assert [each for each in tools.logged if "cancelled" in each] == [
        {"submission": 0, "cancelled": 1}
    ]
    # Four places were freed after ten steps, and taken before the eleventh.
    assert engine.begun_at["0-worker-0-1-0"] == 10
    assert engine.occupied == [PLACES] * 110


def test_work_is_asked_for_again_while_the_last_long_ones_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second work is there only once the first submission's long tail runs."""
    monkeypatch.setattr(worker_module, "LOOK_S", 0.0)
    engine = SharedBatch(PLACES)
    seeker = Script(works(1))
    tools = Tools(engine, seeker, tmp_path)
    look = seeker.look

    def late(under_way: Any) -> Any:
        if len(tools.dispatched) == 1 and len(engine.occupied) >= 10:
            seeker.works = works(1)
        return look(under_way)

    seeker.look = late  # type: ignore[method-assign]
    run(tools)
    assert tools.submitted == [(0, 0), (0, 1)]
    assert engine.begun_at["0-worker-0-1-0"] == 10


def test_an_engine_that_breaks_ends_the_worker_with_nothing_half_done(tmp_path: Path) -> None:
    engine = SharedBatch(PLACES, fails_at=LONG + 2)
    tools = Tools(engine, Script(works(12)), tmp_path)
    with pytest.raises(EngineError, match="it broke"):
        run(tools)
    assert engine.streams == 0
    assert tools.submitted == [(0, 0)]
    assert len(tools.dispatched) > 1


class Failing:
    """Fails from its second submission on; the first is under way until the end."""

    def __init__(self, complete: int) -> None:
        self._complete = complete

    async def produce(self, dispatch: Any, *, lane: str, freed: Any) -> Any:
        if dispatch.n == 0:
            freed(GROUP_SIZE)
            await asyncio.Event().wait()
        freed(GROUP_SIZE)
        if dispatch.n <= self._complete:
            return None
        raise EngineError("logits hold NaN", where="engine shared", fix="none")


@pytest.mark.parametrize("complete", [0, 2])
def test_nothing_is_begun_after_a_failure_beside_work_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: int
) -> None:
    """What was complete by then is announced, though one before it never will be."""
    monkeypatch.setattr(worker_module, "LOOK_S", 0.0)
    tools = Tools(SharedBatch(PLACES), Script(works(300)), tmp_path)
    tools.producer = Failing(complete)  # type: ignore[assignment]
    with pytest.raises(EngineError, match="NaN"):
        run(tools)
    assert len(tools.dispatched) <= complete + 3
    assert [each["submission"] for each in tools.logged] == list(range(1, complete + 1))


def test_few_wait_for_one_that_is_scored_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LOOK_S", 0.0)
    tools = Tools(SharedBatch(PLACES), Script(works(30)), tmp_path)
    begun_beside = []

    class Slow:
        async def produce(self, dispatch: Any, *, lane: str, freed: Any) -> None:
            freed(GROUP_SIZE)
            if dispatch.n == 0:
                for _ in range(1000):
                    await asyncio.sleep(0)
                begun_beside.append(len(tools.dispatched) - 1)

    tools.producer = Slow()  # type: ignore[assignment]
    run(tools)
    assert MOST_UNSENT <= begun_beside[0] <= MOST_UNSENT + 1
    assert [each["submission"] for each in tools.logged] == list(range(30))


@pytest.mark.parametrize(("window", "begun"), [(None, 10), (0.0, 10), (2.0, 30), (9.0, 10)])
def test_an_engine_that_takes_fewer_is_given_no_more(
    tmp_path: Path, window: float | None, begun: int
) -> None:
    """Its cache is too small for its batch; three of four would wait for a place."""
    engine = SharedBatch(PLACES, length=lambda request: 40 - 10 * int(request.id[-1]))
    engine.figures = {} if window is None else {"window": window}
    run(Tools(engine, Script(works(2)), tmp_path))
    assert engine.begun_at["0-worker-0-1-0"] == begun


def test_a_worker_that_is_stopped_leaves_its_dispatches_to_the_next(tmp_path: Path) -> None:
    engine = SharedBatch(PLACES)
    tools = Tools(engine, Script(works(12)), tmp_path)

    async def work() -> None:
        task = asyncio.create_task(Worker(tools).work())  # type: ignore[arg-type]
        await tools.two_submitted.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert engine.streams == 0
        assert asyncio.all_tasks() <= {asyncio.current_task(), engine.stepping}

    asyncio.run(work())
    tools.trace.close()
    assert tools.submitted == [(0, 0), (0, 1)]
    assert len(tools.dispatched) > 2
