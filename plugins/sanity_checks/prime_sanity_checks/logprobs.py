"""Check `logprobs`: the log-probabilities are the policy's, so that corrections may use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    Params,
    RolloutView,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import by_dtype, few, model_values, spoken


class LogprobsParams(Params):
    """Parameters of the check `logprobs`; defaults are by the run's dtype."""

    mean_error: float | None = Field(
        None, gt=0, description="mean difference of one rollout, in nats"
    )
    token_error: float | None = Field(
        None, gt=0, description="largest difference of one token, in nats"
    )


class Logprobs:
    """Compares the column with one forward pass."""

    stage: Stage = "model"

    def __init__(self, params: LogprobsParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of single rows."""
        return few(self._problems(submission, context))

    def _problems(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        dtype = context.run.dtype
        mean_limit = by_dtype(self._params.mean_error, dtype, float32=0.005, bfloat16=0.25)
        token_limit = by_dtype(self._params.token_error, dtype, float32=0.05, bfloat16=2.0)
        rows = spoken(submission, context)
        for index, prefill in zip(rows, context.prefill(rows), strict=True):
            row = submission.rows[index]
            theirs = np.array(model_values(row, row.completion_logprobs))
            errors = np.abs(theirs - np.asarray(prefill.logprobs))
            mean, worst = float(errors.mean()), float(errors.max())
            if not (mean <= mean_limit and worst <= token_limit):
                yield Finding(
                    "reject",
                    f"log-probabilities differ from the policy's by {mean:.3g} nats on average, "
                    f"{worst:.3g} at most",
                    index,
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
