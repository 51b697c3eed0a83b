"""Check `bounds`: scores, rewards, lengths, token ids and log-probabilities that can be at all."""

from __future__ import annotations

import math
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
    RunFacts,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few

# Seeded noise lies between -2.9 and 17.4, so only tokens within 20.3 nats of the best can win
# (DESIGN section 6), and the best of V tokens has at least 1/V.
RACE_SPAN = 20.3
ROUNDING = 1.0


class BoundsParams(Params):
    """Parameters of the check `bounds`."""

    max_reward: float = Field(
        100.0, gt=0, description="largest absolute reward, and reward part, of a rollout"
    )


class Bounds:
    """Needs nothing but the rows."""

    stage: Stage = "row"

    def __init__(self, params: BoundsParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of single rows."""
        return few(
            Finding("reject", reason, index)
            for index, row in enumerate(submission.rows)
            for reason in self._of_row(row, context.run)
        )

    def _of_row(self, row: RolloutView, run: RunFacts) -> Iterator[str]:
        if row.environment not in run.score_ranges:
            yield f"environment {row.environment[:80]} isn't one of the run's"
            return
        low, high = (float(np.float32(each)) for each in run.score_ranges[row.environment])
        if row.score is not None and not low <= row.score <= high:
            yield f"score {row.score:g} is outside [{low:g}, {high:g}]"
        if row.score_status == "invalid_output" and row.score != low:
            yield f"invalid_output is worth {low:g}, not {row.score}"
        values = [*row.reward_parts.values(), *([] if row.reward is None else [row.reward])]
        most = self._params.max_reward
        if not all(abs(value) <= most for value in values):
            yield f"a reward or part of it is beyond {most:g}"
        if row.score_status != "error" and len(row.prompt_tokens) > run.max_prompt_tokens:
            yield f"{len(row.prompt_tokens)} prompt tokens are above {run.max_prompt_tokens}"
        total = len(row.prompt_tokens) + len(row.completion_tokens)
        if row.length > run.max_tokens or total > run.max_total_tokens:
            yield f"{row.length} model tokens, {total} in all, are above the limits"
        if len(row.turn_ends) > run.max_turns:
            yield f"{len(row.turn_ends)} turns are above {run.max_turns}"
        largest = max(max(row.prompt_tokens, default=0), max(row.completion_tokens, default=0))
        if largest >= run.vocabulary:
            yield f"token id {largest} is beyond the vocabulary"
        floor = -(RACE_SPAN + math.log(run.vocabulary) + ROUNDING)
        if not all(floor <= value <= 0 for value in row.completion_logprobs):
            yield f"a log-probability is outside [{floor:.1f}, 0]: no such token can be drawn"

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows that are all worth more than anything."""
        most = 2 * self._params.max_reward
        rows: list[Any] = list(submission.rows)
        return [row if row.reward is None else replace(row, reward=most) for row in rows]


def make_bounds(params: BoundsParams, context: Context) -> Bounds:
    """Factory of the spec."""
    return Bounds(params)


SPEC = SanityCheckSpec(
    name="bounds",
    params=BoundsParams,
    factory=make_bounds,
    summary="Scores, rewards, lengths, ids and log-probabilities within bounds",
    cost="nothing",
    catches="values that can't be",
)
