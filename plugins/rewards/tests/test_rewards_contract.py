"""Both reward functions keep the contract of their kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prime_rewards import TaskMinusLengthParams, make_task, make_task_minus_length

from prime_core.api import NoParams, RewardFunction
from prime_core.testing.contract import RewardFunctionContract


class NoContext:
    cache_dir = Path("unused")
    run_dir = None
    offline = True


class TestTask(RewardFunctionContract):
    @pytest.fixture
    def make_reward(self) -> Callable[[], RewardFunction]:
        return lambda: make_task(NoParams(), NoContext())


class TestTaskMinusLength(RewardFunctionContract):
    @pytest.fixture
    def make_reward(self) -> Callable[[], RewardFunction]:
        return lambda: make_task_minus_length(TaskMinusLengthParams(), NoContext())
