"""Check `rewards`: scores and rewards are what the run's own hosts say of these completions.

A verdict that a resource limit decided may differ between machines, and a node's error may be its
machine's: both drop the group and accuse nobody. Where graders differ by themselves, a node's score
may differ from ours by a tolerance; what the reward function makes of it may not.
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
    Rescored,
    RolloutView,
    SanityCheckSpec,
    Severity,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few

VALUELESS = ("abstained", "error")


class RewardsParams(Params):
    """Parameters of the check `rewards`."""

    tolerance: float = Field(
        1e-6, ge=0, description="difference of scores and rewards, relative above 1"
    )
    loose_tolerance: float = Field(
        0.1, ge=0, description="difference of scores in environments that aren't deterministic"
    )


class Rewards:
    """Scores every row that it looks at again; one call a group for the reward function."""

    stage: Stage = "row"

    def __init__(self, params: RewardsParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings, group by group."""
        rows = list(context.rows)
        ours = dict(zip(rows, context.rescore(rows), strict=True))
        groups: dict[str, list[int]] = {}
        for index in rows:
            groups.setdefault(submission.rows[index].group_id, []).append(index)
        found = [
            finding
            for members in groups.values()
            for finding in self._of_group(submission, members, ours, context)
        ]
        found += self._without_signal(submission, context)
        grave = [finding for finding in found if finding.severity != "drop"]
        drops = [finding for finding in found if finding.severity == "drop"]
        return [*few(grave), *drops]

    def _of_group(
        self,
        submission: SubmissionView,
        members: Sequence[int],
        ours: dict[int, Rescored],
        context: CheckContext,
    ) -> Iterator[Finding]:
        for index in members:
            if ours[index].mismatch:
                yield Finding("reject", f"its conversation: {ours[index].mismatch}"[:250], index)
                return
        environment = submission.rows[members[0]].environment
        fixed = environment in context.run.deterministic
        tolerance = self._params.tolerance if fixed else self._params.loose_tolerance
        for index in members:
            reason = _dropped(submission.rows[index], ours[index], tolerance)
            if reason:
                yield Finding("drop", reason, index)
                return  # the rewards of a group depend on all its scores
        severity: Severity = "slash" if fixed else "reject"
        for index in members:
            row = submission.rows[index]
            for reason in _differences(row, ours[index], tolerance, self._params.tolerance):
                yield Finding(severity, reason, index)

    def _without_signal(
        self, submission: SubmissionView, context: CheckContext
    ) -> Iterator[Finding]:
        """Groups, looked at or not, that tolerated differences alone can tell apart.

        Advantages scale whatever a group's rewards differ by: a node that shades equal rewards
        within the tolerance would make full signal of none. What equal scores' rewards differ by
        beyond that, a length for instance, is recomputed from the tokens, and signal.
        """
        groups: dict[str, list[int]] = {}
        for index, row in enumerate(submission.rows):
            if row.reward is not None and row.score is not None:
                groups.setdefault(row.group_id, []).append(index)
        for members in groups.values():
            rows = [submission.rows[index] for index in members]
            scores = [row.score for row in rows if row.score is not None]
            rewards = [row.reward for row in rows if row.reward is not None]
            shaded = _is_shade(rewards, self._params.tolerance)
            if rows[0].environment not in context.run.deterministic:
                loose = self._params.loose_tolerance
                shaded |= _is_shade(scores, loose) and _is_shade(rewards, loose)
            if shaded:
                reason = "its group differs by no more than the tolerance: no signal"
                yield Finding("drop", reason, members[0], blameless=True)

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows whose scores are turned over, and rewards with them, where none can be doubted."""
        rows: list[Any] = list(submission.rows)
        looked_at = list(context.rows)
        for index, ours in zip(looked_at, context.rescore(looked_at), strict=True):
            row = rows[index]
            low, high = context.run.score_ranges.get(row.environment, (0.0, 0.0))
            sure = row.environment in context.run.deterministic and not ours.limited
            if sure and row.score_status == "scored" and low != high:
                other = low if row.score > (low + high) / 2 else high
                rows[index] = replace(row, score=other, reward=row.reward + other - row.score)
        return rows


def _is_shade(values: Sequence[float], tolerance: float) -> bool:
    """Whether values differ, and by no more than two nodes' tolerated differences."""
    spread = max(values) - min(values)
    most = max(1.0, *map(abs, values))
    return 0 < spread <= 2 * tolerance * most * (1 + tolerance)


def _dropped(row: RolloutView, ours: Rescored, tolerance: float) -> str:
    """Why nobody can say who is right; "" where that can be said."""
    here, there = ours.score.status in VALUELESS, row.score_status in VALUELESS
    if here and there:
        return ""
    if here:
        return f"our grader says {ours.score.status}, the node {row.score_status}"
    if there:
        return f"the node's grader says {row.score_status}, ours scores it"
    close = _close(row.score, ours.score.value, tolerance)
    differs = ours.score.status != row.score_status or not close
    return "a resource limit decided its score" if ours.limited and differs else ""


def _differences(
    row: RolloutView, ours: Rescored, tolerance: float, strict: float
) -> Iterator[str]:
    """Differences of the score beyond `tolerance`, of what follows from it beyond `strict`."""
    reward = ours.reward if ours.claimed is None else ours.claimed.total
    parts = ours.parts if ours.claimed is None else ours.claimed.parts
    if ours.score.status in VALUELESS:
        return
    if row.score_status != ours.score.status:
        yield f"says {row.score_status}, the verifier says {ours.score.status}"
    elif not _close(row.score, ours.score.value, tolerance):
        yield f"says score {row.score:g}, the verifier gives {ours.score.value:g}"
    elif not _close(row.reward, reward, strict):
        yield f"says reward {row.reward:g}, the reward function gives {reward:g}"
    elif set(row.reward_parts) != set(parts) or not all(
        _close(value, parts[name], strict) for name, value in row.reward_parts.items()
    ):
        yield "says other reward parts than the reward function"


def _close(theirs: float | None, ours: float | None, tolerance: float) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    value = float(np.float32(ours))
    return abs(theirs - value) <= tolerance * max(1.0, abs(value))


def make_rewards(params: RewardsParams, context: Context) -> Rewards:
    """Factory of the spec."""
    return Rewards(params)


SPEC = SanityCheckSpec(
    name="rewards",
    params=RewardsParams,
    factory=make_rewards,
    summary="Scores and rewards recomputed by the run's own hosts",
    cost="one scoring of the rows",
    catches="forged scores and rewards, edited conversations",
)
