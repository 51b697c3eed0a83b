"""Unusable gold answers are refused or dropped, never unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from prime_core.api import GoldReport, RunError, Task
from prime_core.config.sections import EnvironmentChoice
from prime_core.hosting.golds import held_out, usable_golds


class FakePool:
    """Every third gold answer is unusable."""

    def __init__(self, checks: bool = True) -> None:
        self.description = SimpleNamespace(checks_golds=checks)
        self.asked: list[int] = []

    async def tasks(self, indices: Sequence[int]) -> list[Task]:
        return [Task(f"t{index}", (), None) for index in indices]

    async def check_golds(self, indices: Sequence[int]) -> list[GoldReport]:
        self.asked += indices
        return [GoldReport(i % 3 != 0, "", "" if i % 3 else "it is empty") for i in indices]


def usable(pool: FakePool, count: int, **choice: Any) -> Sequence[tuple[int, str]]:
    environment = EnvironmentChoice.model_validate({"use": "math", **choice})
    kept = [(index, f"t{index}") for index in range(count)]
    return asyncio.run(usable_golds(pool, environment, kept))  # type: ignore[arg-type]


def test_dropped_tasks_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    pool = FakePool()
    kept = usable(pool, 600, bad_golds="drop")
    assert [index for index, _ in kept] == [i for i in range(600) if i % 3]
    assert pool.asked == list(range(600))
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 200
    assert printed[1] == "math: dropped for its gold answer, t3: it is empty"


def test_refusal_names_the_first_tasks_and_counts_the_rest() -> None:
    with pytest.raises(RunError, match="can't judge by 34 gold answers") as caught:
        usable(FakePool(), 100)
    assert "t57: it is empty" in str(caught.value)
    assert "t60:" not in str(caught.value)
    assert "and 14 more" in str(caught.value)
    assert 'bad_golds = "drop"' in str(caught.value)


def test_a_verifier_that_cannot_tell_keeps_all() -> None:
    pool = FakePool(checks=False)
    assert len(usable(pool, 10)) == 10
    assert pool.asked == []


def held(pool: FakePool, indices: Sequence[int], **choice: Any) -> list[int]:
    environment = EnvironmentChoice.model_validate({"use": "math", **choice})
    return asyncio.run(held_out(pool, environment, indices))  # type: ignore[arg-type]


def test_held_out_tasks_are_left_out_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert held(FakePool(), range(0, 900, 2), bad_golds="drop") == [
        index for index in range(0, 900, 2) if index % 3
    ]
    assert "math: dropped for its gold answer, t6: it is empty" in capsys.readouterr().out


def test_held_out_tasks_refuse_a_run_where_the_config_says_so() -> None:
    with pytest.raises(RunError, match="can't judge by 1 gold answer"):
        held(FakePool(), [1, 2, 3])


def test_held_out_tasks_that_all_fail_refuse_the_evaluation() -> None:
    with pytest.raises(RunError, match="no held-out task of environment math is left"):
        held(FakePool(), [3, 6], bad_golds="drop")
