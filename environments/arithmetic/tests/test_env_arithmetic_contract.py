"""The environment keeps the contract of its kind, in one turn and in two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prime_env_arithmetic import ArithmeticParams, make

from prime_core.api import Environment
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import EnvironmentContract

PARAMS = {
    "addition": {"digits": 2, "reversed": True},
    "chain": {"kind": "chain", "style": "words", "split": "test", "limit": 500},
    "comparison": {"kind": "comparison", "limit": 500},
    "retry": {"kind": "retry", "style": "words", "limit": 500},
}


class TestArithmetic(EnvironmentContract):
    @pytest.fixture(params=list(PARAMS))
    def make_environment(self, request: pytest.FixtureRequest) -> Callable[[], Environment]:
        params = ArithmeticParams.model_validate(PARAMS[request.param])
        return lambda: make(params, OfflineContext(Path("unused")))
