"""What a pool answers for honest plugins: every call, in order, whatever the batches."""

from __future__ import annotations

import asyncio
import random

import pytest
from hosting_support import Opened, run, said

from prime_core.api import HostError, Instruction, Message, Score, ScoredRollout

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_process_left")]


def test_every_call_answers_in_order_and_the_description_is_whole(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool(hosts=1, batch=3) as pool:
            about = pool.description
            assert (about.label, about.info.name, about.task_count) == ("hostile", "hostile", 20)
            assert about.multi_turn
            assert about.has_gold
            assert about.verifier == "hostile"
            assert about.ids_checked == 20
            assert about.params["environment"]["count"] == 20
            assert about.distributions["prime-env-hostile"] == "0.1"
            assert {plugin.kind for plugin in about.plugins} == {
                "environment", "verifier", "reward",
            }  # fmt: skip
            tasks = await pool.tasks([3, 1, 19, 0])
            assert [task.id for task in tasks] == ["t3", "t1", "t19", "t0"]
            assert tasks[0].prompt[0].content == "say 3 \ud800"
            assert await pool.find("t7") == 7
            assert await pool.find("absent") is None
            rendered = await pool.render([(0, None), (1, Instruction("in 5"))])
            assert [messages[0].content for messages in rendered] == [
                "say 0 \ud800", "say 1 \ud800 in 5",
            ]  # fmt: skip
            assert await pool.gold(0) == "right"
            assert await pool.wrong(0, 5) == await pool.wrong(0, 5) != await pool.wrong(0, 6)
            prompt, answer = (Message("user", "q"),), (Message("assistant", "a"),)
            replies = await pool.reply([(4, prompt, answer, 1), (4, prompt, answer, 2)])
            assert replies[0] is not None
            assert replies[0].messages[0].content == "t4: a?"
            assert replies[1] is None
            with pytest.raises(IndexError):
                await pool.tasks([20])
            metrics = pool.metrics()
            assert metrics["errors_exception"] == metrics["retries"] == metrics["recycled"] == 0
            assert 0 < metrics["busy_share"] <= 1

    run(check())


def test_rewards_are_finite_and_one_a_rollout_or_an_error(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool() as pool:
            group = [
                ScoredRollout(said("right"), Score(1.0)),
                ScoredRollout(said("no"), Score(0.0, "invalid_output")),
            ]
            rewards = await pool.reward(0, group, 2, 7)
            assert [reward.total for reward in rewards] == [-1.0, -2.0]
            assert rewards[0].parts == {"task": 1.0}
            for step in (13, 14):
                with pytest.raises(HostError) as caught:
                    await pool.reward(0, group, None, step)
                assert caught.value.kind == "value"

    run(check())


def test_scores_depend_neither_on_order_nor_host_nor_load(open_pool: Opened) -> None:
    texts = [*(["right", "wrong", "random", "later 0.5", "invalid", "dirty"] * 12), "thread"]
    texts += ["state" for _ in range(6)]
    expected: dict[str, Score] = {}

    async def check() -> None:
        for hosts, seed in ((1, 0), (1, 1), (3, 2), (3, 3)):
            order = [(index % 20, said(text)) for index, text in enumerate(texts)]
            random.Random(seed).shuffle(order)
            parts = [order[:20], order[20:45], order[45:]]
            async with await open_pool(hosts=hosts, batch=7) as pool:
                scores = await asyncio.gather(*(pool.score(part) for part in parts))
                assert pool.metrics()["scores"] == len(texts)
            for part, found in zip(parts, scores, strict=True):
                for (_, completion), score in zip(part, found, strict=True):
                    assert expected.setdefault(completion.text, score) == score

    run(check())
    assert expected["right"] == Score(1.0)
    assert expected["random"].value == random.Random(0).random()
    state = expected["state"].evidence
    assert (state["variable"], state["timer"], state["mask"]) == (None, 0.0, 0)
    assert state["zone"] == "UTC"
    assert state["locale"].startswith("LC_CTYPE=C.UTF-8;")


def test_a_small_caller_is_served_between_the_batches_of_a_large_one(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool(hosts=1, batch=8) as pool:
            done: list[str] = []

            async def ask(name: str, count: int) -> None:
                await pool.score([(0, said("sleep 0.002"))] * count)
                done.append(name)

            large = asyncio.create_task(ask("large", 200))
            await asyncio.sleep(0)
            await asyncio.gather(large, ask("small", 4))
            assert done == ["small", "large"]

    run(check())


def test_a_closed_pool_ends_what_waits(open_pool: Opened) -> None:
    async def check() -> None:
        pool = await open_pool()
        waiting = [asyncio.create_task(pool.score([(0, said("sleep 30"))])) for _ in range(3)]
        await asyncio.sleep(0.1)
        await pool.close()
        for found in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(found, HostError)
        with pytest.raises(HostError, match="closed"):
            await pool.gold(0)

    run(check())


def test_a_cancelled_caller_leaves_the_pool_usable(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool(batch=2) as pool:
            task = asyncio.create_task(pool.score([(0, said("sleep 0.05"))] * 9))
            await asyncio.sleep(0.06)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await pool.score([(0, said("right"))]))[0] == Score(1.0)
            assert pool.metrics()["queue_length"] == 0

    run(check())
