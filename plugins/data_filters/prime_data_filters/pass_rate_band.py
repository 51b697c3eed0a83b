"""The offline filter: tasks whose pass rate under a reference model lies in a band.

Called before the run, once a task; the rate comes from a profile or from a column of the data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from prime_core.api import Context, DatasetError, Decision, Params, Task, TaskProfile

# INTELLECT-2 (arXiv 2505.07291), its offline filters: 8 answers of a 7B model a task.
PRESETS = {"1/8-4/8": (1 / 8, 4 / 8), "<=6/8": (0.0, 6 / 8)}


def _rate(value: object) -> object:
    # "3/8" is what people mean; the nearest float of it is what passes / attempts gives too.
    if not isinstance(value, str):
        return value
    try:
        return float(Fraction(value))
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{value!r} is neither a number nor a fraction like 3/8") from error


Rate = Annotated[float, BeforeValidator(_rate), Field(ge=0, le=1)]


class PassRateBandParams(Params):
    """The band, both ends included, and what happens to a task without a rate."""

    low: Rate = Field(0.0, description="lowest pass rate kept, e.g. 0.125 or '1/8'")
    high: Rate = Field(1.0, description="highest pass rate kept")
    preset: Literal["1/8-4/8", "<=6/8"] | None = Field(
        None, description="a band of the INTELLECT-2 paper, instead of low and high"
    )
    unknown: Literal["keep", "drop", "error"] = Field(
        "error", description="what happens to a task without a pass rate"
    )
    column: str | None = Field(
        None, description="metadata entry that holds the pass rate, instead of a profile"
    )

    @model_validator(mode="after")
    def _one_band(self) -> PassRateBandParams:
        if self.preset is not None and {"low", "high"} & self.model_fields_set:
            raise ValueError("preset and low/high exclude each other; remove one")
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}: no task could pass")
        return self

    @property
    def band(self) -> tuple[float, float]:
        """Lowest and highest rate that is kept."""
        return (self.low, self.high) if self.preset is None else PRESETS[self.preset]


class PassRateBand:
    """Keeps tasks whose pass rate lies within [low, high]."""

    def __init__(self, params: PassRateBandParams) -> None:
        self._params = params
        self._low, self._high = params.band

    def keep_task(self, task: Task, profile: TaskProfile | None) -> Decision:
        """Keep or drop.

        Raises:
            DatasetError: the rate is no number in [0, 1], or there is none and `unknown` is error.
        """
        rate = self._pass_rate(task, profile)
        if rate is None:
            return self._without_rate(task)
        if rate < self._low:
            return Decision(False, "pass rate below band")
        if rate > self._high:
            return Decision(False, "pass rate above band")
        return Decision(True, "pass rate in band")

    def _pass_rate(self, task: Task, profile: TaskProfile | None) -> float | None:
        if self._params.column is None:
            if profile is None:
                return None
            rate: object = profile.pass_rate
            if profile.attempts > 0:
                rate = profile.passes / profile.attempts
        else:
            rate = task.metadata.get(self._params.column)
            if rate is None:
                return None
        if (
            isinstance(rate, bool)
            or not isinstance(rate, int | float)
            or not math.isfinite(rate)
            or not 0 <= rate <= 1
        ):
            raise DatasetError(
                f"pass rate {rate!r} of task {task.id!r} is no number in [0, 1]",
                where=f"data filter pass_rate_band, column {self._params.column!r}",
                fix="give rates as shares, e.g. 0.25, not as percent or text",
            )
        return float(rate)

    def _without_rate(self, task: Task) -> Decision:
        if self._params.unknown == "error":
            raise DatasetError(
                f"task {task.id!r} has no pass rate",
                where="data filter pass_rate_band",
                fix="run `prime-core profile`, name the column, or set unknown = 'keep' or 'drop'",
            )
        return Decision(self._params.unknown == "keep", "pass rate unknown")


def make_pass_rate_band(params: PassRateBandParams, context: Context) -> PassRateBand:
    """The data filter `pass_rate_band`."""
    return PassRateBand(params)
