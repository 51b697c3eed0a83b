"""Planning, scoring and whole submissions with an environment in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from toy_pools import ToyPool

from prime_core.api import Completion, Instruction, Message, RunError, Task
from prime_core.assignment import AssignmentKey, EnvironmentShare, assign, group_rng
from prime_core.engines.chat import ChatFormat
from prime_core.engines.model_files import load_tokenizer, local_policy
from prime_core.engines.planning import PlannedGroup, Planner
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.turns import Player, WorkCancelled
from prime_core.rollout.produce import Produced, Producer
from prime_core.rollout.scoring import RowSource, finish_group
from prime_core.store.records import Dispatch
from prime_core.store.schema import check_rows
from prime_core.store.trace import Trace, read_trace

DISPATCH = Dispatch("run", 3, "worker-0", 2, 1, "ab" * 32, 5, 4, "default")
KEY = AssignmentKey("run", bytes(32), "worker-0", 3, 2)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = build_tiny_model(tmp_path_factory.mktemp("produce") / "model")
    engine = TransformersEngine(TransformersParams(batch_size=8))
    engine.load(local_policy(directory))
    yield engine, ChatFormat(load_tokenizer(directory))
    engine.close()


class Budget:
    """Draws from three targets."""

    def draw(self, rng: Any, task: Task, node_class: str, step: int) -> int | None:
        return (10, 20, None)[rng.below(3)]

    def instruction(self, budget: int) -> Instruction:
        return Instruction(f"use {budget}")


def planner(chat: ChatFormat, *pools: ToyPool, **options: Any) -> Planner:
    named = {pool.label: pool for pool in pools}
    return Planner(
        pools=named,  # type: ignore[arg-type]
        task_lists={pool.label: pool.task_list() for pool in pools},
        chat=chat,
        budget=options.get("budget"),
        node_class="default",
        max_prompt_tokens=options.get("max_prompt_tokens", 200),
    )


def plan(made: Planner, groups: int = 6) -> list[PlannedGroup]:
    shares = [EnvironmentShare(label, 1.0, 10) for label in made.pools]
    return asyncio.run(made.plan(KEY, assign(KEY, shares, groups, 4)))


def produce(parts: Any, run_dir: Path, *pools: ToyPool, dispatch: Dispatch = DISPATCH) -> Produced:
    engine, chat = parts
    made = planner(chat, *pools)
    answering = {pool.label: pool for pool in pools if pool.multi_turn}
    player = Player(engine, chat, answering, 1.0, 30, 500, 4)  # type: ignore[arg-type]
    shares = [EnvironmentShare(pool.label, 1.0, 10) for pool in pools]
    trace = Trace(run_dir, "worker-0")
    named: Any = {pool.label: pool for pool in pools}
    producer = Producer(shares, made, player, named, trace)
    try:
        return asyncio.run(producer.produce(dispatch))
    finally:
        trace.close()


def test_a_plan_maps_filtered_tasks_and_draws_budgets_from_their_own_words(parts: Any) -> None:
    toy, twin = ToyPool(), ToyPool("twin")
    groups = plan(planner(parts[1], toy, twin, budget=Budget()), 12)
    assert [group.k for group in groups] == list(range(12))
    assert {group.environment for group in groups} == {"toy", "twin"}
    for group in groups:
        assert group.task % 2 == 1
        assert group.task_id == f"t{group.task}"
        expected = (10, 20, None)[group_rng(KEY, group.k, "length_budget").below(3)]
        assert group.length_budget == expected
        text = group.prompt[0].content
        assert text == f"q{group.task}" + (f" use {expected}" if expected else "")
    assert {group.length_budget for group in groups} == {10, 20, None}


def test_a_prompt_that_cannot_be_made_fails_its_group_alone(parts: Any) -> None:
    lengths = {len(group.prompt_tokens) for group in plan(planner(parts[1], ToyPool()))}
    first = plan(planner(parts[1], ToyPool()))[0].task
    groups = plan(planner(parts[1], ToyPool(unrendered={first})))
    assert [bool(group.failure) for group in groups] == [g.task == first for g in groups]
    assert groups[0].failure == "render: can't render"
    limited = plan(planner(parts[1], ToyPool(), max_prompt_tokens=min(lengths) - 1))
    assert all("prompt tokens are above" in group.failure for group in limited)
    assert all(one.failure and one.finish_reason == "stop" for one in limited[0].rollouts())


def test_other_tasks_than_the_prepared_ones_stop_the_worker(parts: Any) -> None:
    with pytest.raises(RunError, match="was prepared with 't"):
        plan(planner(parts[1], ToyPool(renamed=True)))


def finish(pool: ToyPool, texts: list[str], failures: dict[int, str] | None = None) -> list[Any]:
    group = PlannedGroup("3-worker-0-2-0", 0, "toy", 1, "t1", (5, 6, 7, 8)[: len(texts)])
    rollouts = group.rollouts()
    for index, (rollout, text) in enumerate(zip(rollouts, texts, strict=True)):
        rollout.prompt_tokens, rollout.tokens, rollout.mask = (1,), [2], [True]
        rollout.logprobs, rollout.turn_ends, rollout.finish_reason = [-0.5], [1], "stop"
        rollout.failure = (failures or {}).get(index, "")
        rollout.messages = [Message("assistant", text)]
    rows = asyncio.run(
        finish_group(pool, group, rollouts, RowSource(DISPATCH, 30, 1.0), [b""] * len(rollouts))
    )  # type: ignore[arg-type]
    check_rows(rows)
    return rows


def test_only_scored_rollouts_have_a_reward() -> None:
    pool = ToyPool(abstained={"pass"})
    rows = finish(pool, ["ab", "pass", "abc", "abcd"], {3: "reply: broke"})
    assert [row.score_status for row in rows] == ["scored", "abstained", "scored", "error"]
    assert [row.reward for row in rows] == [1.0, None, 0.0, None]
    assert [row.reward_parts for row in rows] == [{"task": 1.0}, {}, {"task": 0.0}, {}]
    assert pool.rewarded == [2]
    assert [completion.text for completion in pool.scored] == ["ab", "pass", "abc"]
    assert isinstance(pool.scored[0], Completion)
    assert pool.scored[0].token_count == 1


def test_a_reward_function_that_fails_takes_its_group_out() -> None:
    rows = finish(ToyPool(rewardless=True), ["ab", "abc"])
    assert {(row.score_status, row.score, row.reward) for row in rows} == {("error", None, None)}


def test_a_submission_depends_on_its_dispatch_alone(parts: Any, tmp_path: Path) -> None:
    toys = [ToyPool(), ToyPool("chatty", multi_turn=True)]
    first = produce(parts, tmp_path, *toys)
    check_rows(first.rows)
    assert [row.group_id for row in first.rows[::4]] == [f"3-worker-0-2-{k}" for k in range(5)]
    # Slow scores change nothing but the time.
    slow = [ToyPool(slow_s=0.05), ToyPool("chatty", multi_turn=True, slow_s=0.02)]
    assert produce(parts, tmp_path, *slow).rows == first.rows
    other = Dispatch("run", 3, "worker-0", 3, 1, "ab" * 32, 5, 4, "default")
    seeds = {row.sampling_seed for row in produce(parts, tmp_path, *toys, dispatch=other).rows}
    assert not seeds & {row.sampling_seed for row in first.rows}
    assert first.completion_tokens == sum(row.length for row in first.rows)


def test_scoring_overlaps_generation(parts: Any, tmp_path: Path) -> None:
    produce(parts, tmp_path, ToyPool(slow_s=0.01))
    spans = read_trace(tmp_path)["worker-0"]
    generate = next(span for span in spans if span["name"] == "generate")
    score = next(span for span in spans if span["name"] == "score")
    assert score["lane"] != generate["lane"]
    assert score["ts"] < generate["ts"] + generate["dur"]


def test_a_submission_of_failed_prompts_is_all_errors(parts: Any, tmp_path: Path) -> None:
    produced = produce(parts, tmp_path, ToyPool(unrendered=set(range(20))))
    check_rows(produced.rows)
    assert {row.score_status for row in produced.rows} == {"error"}
    assert produced.completion_tokens == 0


def test_cancelled_work_leaves_no_task_behind(parts: Any, tmp_path: Path) -> None:
    engine, _ = parts
    toy = ToyPool(slow_s=5.0)
    original = engine.generate

    async def cancelling(requests: Any) -> Any:
        async for generation in original(requests):
            yield generation
            engine.cancel("3-worker-0-2-4")

    engine.generate = cancelling
    try:
        with pytest.raises(WorkCancelled):
            produce(parts, tmp_path, toy)
    finally:
        del engine.generate
    assert toy.scored == []
