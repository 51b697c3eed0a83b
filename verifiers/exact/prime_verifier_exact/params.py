"""The parameters of the verifier."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from prime_core.api import Params


class ExactParams(Params):
    """What counts as the answer and when two are equal."""

    mode: Literal["number", "text"] = Field(
        "number", description="number: equal as exact numbers; text: equal as text"
    )
    marker: str | None = Field(
        None,
        min_length=1,
        description="the answer follows its last occurrence; default is #### for numbers, and "
        "the whole completion for text",
    )
    last_number: bool = Field(
        False, description="mode number: without a marker, take the last number of the completion"
    )
    ignore_case: bool = Field(False, description="mode text: capitals don't matter")
    whitespace: Literal["collapse", "strip", "exact"] = Field(
        "collapse",
        description="mode text: collapse (runs of white space are one space, none at the ends), "
        "strip (none at the ends) or exact",
    )

    @model_validator(mode="after")
    def _options_fit_the_mode(self) -> ExactParams:
        own = {"number": {"last_number"}, "text": {"ignore_case", "whitespace"}}
        other = "text" if self.mode == "number" else "number"
        wrong = sorted(own[other] & self.model_fields_set)
        if wrong:
            raise ValueError(f"{wrong[0]} belongs to mode {other}, not {self.mode}; remove it")
        return self
