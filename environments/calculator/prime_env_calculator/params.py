"""The parameters of the environment."""

from __future__ import annotations

from pydantic import Field

from prime_core.api import Params
from prime_core.api.datasets import SplitName


class CalculatorParams(Params):
    """How large the numbers are, how often the calculator answers, and which tasks are used."""

    digits: int = Field(3, ge=1, le=6, description="digits of the numbers in a problem")
    calls: int = Field(4, ge=0, le=64, description="how often the calculator answers in a rollout")
    split: SplitName = Field("train", description="train, test (held out by hash) or all")
    test_share: float = Field(0.1, gt=0, lt=1, description="share of the problems held out")
    limit: int = Field(1_000, ge=1, le=100_000, description="at most this many tasks")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of the tasks")
