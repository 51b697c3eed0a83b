"""Check `replay`: every token won its seeded Gumbel race, but for the rounding of another machine.

What a node may choose ends here: the text is a function of the policy, the prompt and the seed.
"""

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
from prime_sanity_checks.findings import by_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


DECOY_TOKENS = 8  # one token may win by luck, and a short file's rounding hides another


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
    file_loss: float | None = Field(
        None, ge=0, description="nats a token of the whole file may lose by, on average"
    )


class Replay(Deviations):
    """Looks at the gaps of one forward pass."""

    def __init__(self, params: ReplayParams) -> None:
        self._params = params

    def _off(self, row: RolloutView, prefill: RowPrefill) -> NDArray[np.float64]:
        return np.asarray(prefill.race_gaps)

    def _margin(self, dtype: str) -> float:
        return by_dtype(self._params.margin, dtype, float32=0.001, bfloat16=0.25)

    def _of_rollout(self, off: NDArray[np.float64], dtype: str) -> str:
        most = by_dtype(self._params.most, dtype, float32=0.02, bfloat16=2.5)
        share = by_dtype(self._params.lost_share, dtype, float32=0.02, bfloat16=0.1)
        lost = int((~(off <= self._margin(dtype))).sum())
        worst = float(off.max())
        # one token may always lose by a little: a short rollout has no share of one
        if worst <= most and lost <= max(1, share * off.size):
            return ""
        return (
            f"{lost} of {off.size} tokens lost their race, token {int(np.argmax(off))} by "
            f"{worst:.2g} nats: not what the seed draws"
        )

    def _of_file(self, dtype: str) -> OfFile:
        mean = by_dtype(self._params.file_loss, dtype, float32=2e-6, bfloat16=0.01)
        return OfFile(mean, slack=self._margin(dtype))

    def _said_of_file(self, mean: float, tokens: int) -> str:
        return (
            f"the file's {tokens} tokens lost their races by {mean:.2g} nats on average: another "
            "model's near-ties"
        )

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows whose model tokens are all another one; None where they are too few to be sure."""
        rows: list[Any] = list(submission.rows)
        size, stops, changed = context.run.vocabulary, context.run.stop_ids, 0
        for index, row in enumerate(rows):
            tokens = list(row.completion_tokens)
            for place, own in enumerate(row.completion_mask):
                other = (tokens[place] + 1) % size
                if own and tokens[place] not in stops and other not in stops:
                    tokens[place] = other
                    changed += row.reward is not None
            rows[index] = replace(row, completion_tokens=tokens)
        return rows if changed >= DECOY_TOKENS else None


def make_replay(params: ReplayParams, context: Context) -> Replay:
    """Factory of the spec."""
    return Replay(params)


SPEC = SanityCheckSpec(
    name="replay",
    params=ReplayParams,
    factory=make_replay,
    summary="Every token won its seeded race",
    cost="shares one forward pass",
    catches="text that the seed doesn't draw: best-of-n, teacher forcing, edits, int8 near-ties",
)
