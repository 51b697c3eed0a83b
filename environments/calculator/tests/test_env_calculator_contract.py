"""The environment keeps the contract of its kind, with its tool and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prime_env_calculator import CalculatorParams, make

from prime_core.api import Environment
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import EnvironmentContract


class TestCalculator(EnvironmentContract):
    @pytest.fixture(params=[{}, {"calls": 0, "digits": 1, "split": "test", "limit": 50}])
    def make_environment(self, request: pytest.FixtureRequest) -> Callable[[], Environment]:
        params = CalculatorParams.model_validate(request.param)
        return lambda: make(params, OfflineContext(Path("unused")))
