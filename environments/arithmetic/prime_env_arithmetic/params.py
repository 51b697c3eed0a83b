"""The parameters of the environment, with the combinations that make no sense refused."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from prime_core.api import Params
from prime_core.api.datasets import SplitName

KindName = Literal["addition", "subtraction", "multiplication", "chain", "comparison", "retry"]


class ArithmeticParams(Params):
    """What problems are made, how they are asked, and which side of them is used."""

    kind: KindName = Field(
        "addition", description="sort of problem; retry is addition with one more try"
    )
    digits: int = Field(2, ge=1, le=9, description="digits of each operand")
    terms: int = Field(3, ge=3, le=6, description="operands of a problem of kind chain")
    reversed: bool = Field(False, description="the answer is written lowest digit first")
    style: Literal["compact", "words"] = Field(
        "compact", description="compact: 07+05= of fixed width; words: a question for chat models"
    )
    split: SplitName = Field("train", description="train, test (held out by hash) or all")
    test_share: float = Field(0.1, gt=0, lt=1, description="share of the problems held out")
    limit: int = Field(10_000, ge=1, le=1_000_000, description="at most this many tasks")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of the order of the tasks")
    second_try_value: float = Field(
        0.5, ge=0, le=1, description="score of a right second try of kind retry"
    )

    @model_validator(mode="after")
    def _options_fit_the_kind(self) -> ArithmeticParams:
        given = self.model_fields_set
        if "terms" in given and self.kind != "chain":
            raise ValueError(f"terms belongs to kind chain, not {self.kind}; remove it")
        if "second_try_value" in given and self.kind != "retry":
            raise ValueError(f"second_try_value belongs to kind retry, not {self.kind}; remove it")
        if self.reversed and self.kind == "comparison":
            raise ValueError("a comparison has no digits to reverse; remove reversed")
        return self
