"""Both filters keep the contract of their kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prime_data_filters import NonzeroSignalParams, PassRateBandParams
from prime_data_filters.nonzero_signal import make_nonzero_signal
from prime_data_filters.pass_rate_band import make_pass_rate_band

from prime_core.api import GroupFilter, TaskFilter
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import DataFilterContract


class TestNonzeroSignal(DataFilterContract):
    @pytest.fixture(params=["total", "task"])
    def make_data_filter(self, request: pytest.FixtureRequest) -> Callable[[], GroupFilter]:
        return lambda: make_nonzero_signal(
            NonzeroSignalParams(by=request.param), OfflineContext(Path("unused"))
        )


class TestPassRateBand(DataFilterContract):
    @pytest.fixture(params=["keep", "drop", "error"])
    def make_data_filter(self, request: pytest.FixtureRequest) -> Callable[[], TaskFilter]:
        params = PassRateBandParams(preset="1/8-4/8", unknown=request.param)
        return lambda: make_pass_rate_band(params, OfflineContext(Path("unused")))
