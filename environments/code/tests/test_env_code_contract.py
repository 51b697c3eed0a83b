"""The environment keeps the contract of environments, judged by the verifier `code` in jails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prime_env_code import CodeEnvParams, make
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Environment, Sandbox, Verifier
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import EnvironmentContract


class TestProcedural(EnvironmentContract):
    sample = 6

    @pytest.fixture
    def make_environment(self, tmp_path: Path) -> Callable[[], Environment]:
        params = CodeEnvParams.model_validate({"problems": {"limit": 30, "seed": 5}})
        return lambda: make(params, OfflineContext(tmp_path))

    @pytest.fixture
    def verifier(self, jails: Sandbox) -> Verifier:
        return CodeVerifier(CodeParams(), jails)
