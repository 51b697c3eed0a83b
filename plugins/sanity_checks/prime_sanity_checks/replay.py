"""Check `replay`: every token won its seeded Gumbel race, but for the rounding of another machine.

What a node may choose ends here: the text is a function of the policy, the prompt and the seed.
"""

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
from prime_sanity_checks.findings import by_dtype, few, spoken


class ReplayParams(Params):
    """Parameters of the check `replay`; defaults are by the run's dtype."""

    margin: float | None = Field(
        None, gt=0, description="nats by which a token may lose its race and count as won"
    )
    most: float | None = Field(
        None, gt=0, description="nats by which no token may lose its race, ever"
    )
    lost_share: float | None = Field(
        None, ge=0, lt=1, description="share of a rollout's tokens that may lose by the margin"
    )


class Replay:
    """Looks at the gaps of one forward pass."""

    stage: Stage = "model"

    def __init__(self, params: ReplayParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of single rows."""
        return few(self._problems(submission, context))

    def _problems(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        params, dtype = self._params, context.run.dtype
        margin = by_dtype(params.margin, dtype, float32=0.005, bfloat16=0.25)
        most = by_dtype(params.most, dtype, float32=0.1, bfloat16=2.5)
        share = by_dtype(params.lost_share, dtype, float32=0.02, bfloat16=0.1)
        rows = spoken(submission, context)
        for index, prefill in zip(rows, context.prefill(rows), strict=True):
            gaps = np.asarray(prefill.race_gaps)
            lost = int((~(gaps <= margin)).sum())
            worst = float(gaps.max())
            # one token may always lose by a little: a short rollout has no share of one
            if not worst <= most or lost > max(1, share * gaps.size):
                place = int(np.argmax(gaps))
                yield Finding(
                    "reject",
                    f"{lost} of {gaps.size} tokens lost their race, token {place} by {worst:.2g} "
                    "nats: not what the seed draws",
                    index,
                )

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows whose first token is another one, in every rollout."""
        rows: list[Any] = list(submission.rows)
        stops, changed = context.run.stop_ids, False
        for index, row in enumerate(rows):
            if row.length < 2:
                continue
            first = row.completion_tokens[0]
            other = next(t for t in range(context.run.vocabulary) if t not in {first, *stops})
            rows[index] = replace(row, completion_tokens=[other, *row.completion_tokens[1:]])
            changed = True
        return rows if changed else None


def make_replay(params: ReplayParams, context: Context) -> Replay:
    """Factory of the spec."""
    return Replay(params)
