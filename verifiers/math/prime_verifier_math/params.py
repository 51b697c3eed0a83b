"""The parameters of the verifier: each rule that may be chosen otherwise, by name."""

from __future__ import annotations

from pydantic import Field

from prime_core.api import Params


class MathParams(Params):
    """What counts as an answer, and which coercions are accepted."""

    number_marker: bool = Field(
        True, description="GSM8K style: a last line `#### 42` or `A: 42` states the answer"
    )
    statements: bool = Field(
        True, description="without a box, an explicit statement (Answer: ..., the answer is ...)"
    )
    last_number: bool = Field(
        False, description="without any statement, take the last number of the completion"
    )
    percent_sign_optional: bool = Field(
        True, description="a gold percentage is also matched without its sign: 5% by 5"
    )
    base_optional: bool = Field(
        True, description="digits match where one side leaves its base out: 52_8 by 52"
    )
