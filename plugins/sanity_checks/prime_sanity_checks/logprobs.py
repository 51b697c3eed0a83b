"""Check `logprobs`: the log-probabilities are the policy's, so that corrections may use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from prime_core.api import (
    CheckContext,
    Context,
    Params,
    RolloutView,
    RowPrefill,
    SanityCheckSpec,
    SubmissionView,
)
from prime_sanity_checks.deviations import Deviations, OfFile
from prime_sanity_checks.findings import by_dtype, model_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LogprobsParams(Params):
    """Parameters of the check `logprobs`; defaults are by the run's dtype."""

    mean_error: float | None = Field(
        None, gt=0, description="mean difference of one rollout, in nats"
    )
    token_error: float | None = Field(
        None, gt=0, description="largest difference of one token, in nats"
    )
    file_error: float | None = Field(
        None, gt=0, description="mean difference over the whole file, in nats"
    )


class Logprobs(Deviations):
    """Compares the column with one forward pass."""

    def __init__(self, params: LogprobsParams) -> None:
        self._params = params

    def _off(self, row: RolloutView, prefill: RowPrefill) -> NDArray[np.float64]:
        theirs = np.array(model_values(row, row.completion_logprobs))
        found: NDArray[np.float64] = np.abs(theirs - np.asarray(prefill.logprobs))
        return found

    def _mean(self, dtype: str) -> float:
        return by_dtype(self._params.mean_error, dtype, float32=0.002, bfloat16=0.25)

    def _of_rollout(self, off: NDArray[np.float64], dtype: str) -> str:
        token_limit = by_dtype(self._params.token_error, dtype, float32=0.01, bfloat16=2.0)
        mean, worst = float(off.mean()), float(off.max())
        if mean <= self._mean(dtype) and worst <= token_limit:
            return ""
        return (
            f"log-probabilities differ from the policy's by {mean:.3g} nats on average, "
            f"{worst:.3g} at most"
        )

    def _of_file(self, dtype: str) -> OfFile:
        mean = by_dtype(self._params.file_error, dtype, float32=5e-4, bfloat16=0.1)
        return OfFile(mean, slack=self._mean(dtype))

    def _said_of_file(self, mean: float, tokens: int) -> str:
        return (
            f"the file's {tokens} log-probabilities differ from the policy's by {mean:.3g} nats "
            "on average"
        )

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows whose tokens all seem two nats rarer."""
        rows: list[Any] = list(submission.rows)
        return [
            replace(
                row,
                completion_logprobs=[
                    value - 2.0 * own
                    for value, own in zip(row.completion_logprobs, row.completion_mask, strict=True)
                ],
            )
            for row in rows
        ]


def make_logprobs(params: LogprobsParams, context: Context) -> Logprobs:
    """Factory of the spec."""
    return Logprobs(params)


SPEC = SanityCheckSpec(
    name="logprobs",
    params=LogprobsParams,
    factory=make_logprobs,
    summary="Log-probabilities against one forward pass",
    cost="shares one forward pass",
    catches="forged log-probabilities, other weights",
)
