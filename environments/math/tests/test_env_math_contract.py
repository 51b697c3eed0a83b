"""The environment keeps the contract of its kind, its own problems and those of a data set."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prime_env_math import MathParams, make
from prime_verifier_math import MathParams as VerifierParams
from prime_verifier_math import make as make_verifier

from prime_core.api import Environment, Verifier
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import EnvironmentContract

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared")) / "data"


class MathContract(EnvironmentContract):
    @pytest.fixture
    def verifier(self) -> Verifier:
        return make_verifier(VerifierParams(), OfflineContext(Path("unused")))


class TestProcedural(MathContract):
    sample = 98  # two of each template

    @pytest.fixture(params=["train", "test"])
    def make_environment(self, request: pytest.FixtureRequest) -> Callable[[], Environment]:
        params = MathParams(split=request.param, limit=490)
        return lambda: make(params, OfflineContext(Path("unused")))


class TestMath500(MathContract):
    sample = 60

    @pytest.fixture
    def make_environment(self, tmp_path: Path) -> Callable[[], Environment]:
        path = SHARED / "math500" / "math500.json"
        if not path.is_file():
            pytest.skip("the shared data set math500 isn't here; set PRIME_SHARED to its folder")
        params: dict[str, Any] = {
            "source": "math_500",
            "dataset": {"url": str(path), "metadata_columns": []},
            "few_shot": 1,
        }
        return lambda: make(MathParams.model_validate(params), OfflineContext(tmp_path))
