"""The length budget keeps the contract of its kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from prime_length_budgets import DiscreteParams, make_discrete

from prime_core.api import LengthBudget
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import LengthBudgetContract


class TestDiscrete(LengthBudgetContract):
    @pytest.fixture
    def make_length_budget(self) -> Callable[[], LengthBudget]:
        params = DiscreteParams(
            targets=(1000, 2000, 4000), weights=(3, 2, 1), classes={"small": (1000,)}
        )
        return lambda: make_discrete(params, OfflineContext(Path("unused")))

    @pytest.fixture
    def node_classes(self) -> Sequence[str]:
        return ["default", "small"]
