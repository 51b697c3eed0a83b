"""The sandbox keeps the contract of its kind on this host, as the user that runs the tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prime_sandbox_nsjail import NsjailParams, make

from prime_core.api import IsolationLevel, Sandbox
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import SandboxContract
from prime_core.testing.privileges import namespaces_refused, reachable_level

pytestmark = pytest.mark.skipif(namespaces_refused() is not None, reason=str(namespaces_refused()))


class TestNsjail(SandboxContract):
    @pytest.fixture(scope="class")
    @classmethod
    def make_sandbox(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Sandbox]:
        folder = tmp_path_factory.getbasetemp().parent / "prime-core-jails"
        return lambda: make(NsjailParams(), OfflineContext(folder))

    @pytest.fixture(scope="class")
    @classmethod
    def level(cls) -> IsolationLevel:
        return reachable_level()
