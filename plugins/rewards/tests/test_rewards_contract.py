"""Both reward functions keep the contract of their kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prime_rewards import TaskMinusLengthParams, make_task, make_task_minus_length

from prime_core.api import NoParams, RewardFunction
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import RewardFunctionContract


class TestTask(RewardFunctionContract):
    @pytest.fixture
    def make_reward(self) -> Callable[[], RewardFunction]:
        return lambda: make_task(NoParams(), OfflineContext(Path("unused")))


class TestTaskMinusLength(RewardFunctionContract):
    @pytest.fixture
    def make_reward(self) -> Callable[[], RewardFunction]:
        return lambda: make_task_minus_length(
            TaskMinusLengthParams(), OfflineContext(Path("unused"))
        )
