"""Check `termination`: a rollout ends where the model ended it, or at a limit, and nothing follows.

An end token must have won its seeded race within the margin, or be as probable as INTELLECT-2
section 2.3.2 demands: 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pydantic import Field

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    Params,
    RolloutView,
    RowPrefill,
    RunFacts,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import by_dtype, few, spoken


class TerminationParams(Params):
    """Parameters of the check `termination`."""

    min_eos_probability: float = Field(
        0.1, gt=0, lt=1, description="an end token that lost its race needs at least this"
    )
    margin: float | None = Field(
        None, gt=0, description="nats an end token may lose its race by; default by dtype"
    )


class Termination:
    """First what the tokens say, then what the policy says of each end token."""

    stage: Stage = "model"

    def __init__(self, params: TerminationParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of single rows."""
        rows = [index for index, row in enumerate(submission.rows) if row.length]
        found = few(
            Finding("reject", reason, index)
            for index in rows
            for reason in _structure(submission.rows[index], context.run)
        )
        if found:
            return found
        ended = [i for i in spoken(submission, context) if submission.rows[i].turn_ends]
        return few(
            Finding("reject", reason, index)
            for index, prefill in zip(ended, context.prefill(ended), strict=True)
            for reason in self._ends(submission.rows[index], prefill, context.run)
        )

    def _ends(self, row: RolloutView, prefill: RowPrefill, run: RunFacts) -> Iterator[str]:
        margin = by_dtype(self._params.margin, run.dtype, float32=0.02, bfloat16=1.0)
        floor, position = math.log(self._params.min_eos_probability), -1
        for token, own in zip(row.completion_tokens, row.completion_mask, strict=True):
            position += own
            if not own or token not in run.stop_ids:
                continue
            chance, gap = float(prefill.logprobs[position]), float(prefill.race_gaps[position])
            if not (gap <= margin or chance >= floor):
                yield f"its end token has probability {math.exp(chance):.2g} and lost its race"


def _structure(row: RolloutView, run: RunFacts) -> Iterator[str]:
    """What the tokens alone say of turns and the end."""
    start, last = 0, len(row.turn_ends) - 1
    for turn, end in enumerate(row.turn_ends):
        own = [
            token
            for token, mine in zip(
                row.completion_tokens[start:end], row.completion_mask[start:end], strict=True
            )
            if mine
        ]
        stopped = own[-1] in run.stop_ids
        if any(token in run.stop_ids for token in own[:-1]):
            yield "text follows an end token"
        if turn < last and not stopped:
            yield f"turn {turn} ends without an end token"
        start = end
    if row.score_status == "error":
        return  # an environment that failed may have cut it anywhere
    if len(row.turn_ends) > 1 and row.environment not in run.multi_turn:
        yield f"it has {len(row.turn_ends)} turns, and its environment never answers"
    total = len(row.prompt_tokens) + len(row.completion_tokens)
    full = row.length >= run.max_tokens or total >= run.max_total_tokens
    if row.finish_reason == "stop" and not stopped:
        yield "it says stop, and its last token isn't an end token"
    if row.finish_reason == "turns":
        yield from _turns(row, run, stopped)
    if row.finish_reason == "length" and not (full or stopped):
        yield f"it says length at {row.length} of {run.max_tokens} tokens"
    if row.completion_mask and not row.completion_mask[-1]:
        yield "it ends with the environment's words"


def _turns(row: RolloutView, run: RunFacts, stopped: bool) -> Iterator[str]:
    """No turn was left: the environment answered the last one, so that an end token ended it.

    Whether it would have answered is asked with the scores, by `rewards`.
    """
    if row.environment not in run.multi_turn:
        yield "it says turns, and its environment never answers"
    if len(row.turn_ends) < run.max_turns:
        yield f"it says turns after {len(row.turn_ends)} of {run.max_turns}"
    if not stopped:
        yield "it says turns, and its last token isn't an end token"


def make_termination(params: TerminationParams, context: Context) -> Termination:
    """Factory of the spec."""
    return Termination(params)


SPEC = SanityCheckSpec(
    name="termination",
    params=TerminationParams,
    factory=make_termination,
    summary="End tokens that the policy would draw, or a limit; nothing after",
    cost="shares one forward pass",
    catches="truncated rollouts, text after the end",
)
