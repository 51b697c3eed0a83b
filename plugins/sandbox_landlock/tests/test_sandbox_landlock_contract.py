"""The sandbox keeps the contract of its kind on this host, as the user that runs the tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prime_sandbox_landlock import LandlockParams, make

from prime_core.api import IsolationLevel, Sandbox
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import SandboxContract


class TestLandlock(SandboxContract):
    @pytest.fixture(scope="class")
    @classmethod
    def make_sandbox(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Sandbox]:
        folder = tmp_path_factory.getbasetemp().parent / "prime-core-jails"
        return lambda: make(LandlockParams(), OfflineContext(folder))

    @pytest.fixture(scope="class")
    @classmethod
    def level(cls) -> IsolationLevel:
        return "process"
