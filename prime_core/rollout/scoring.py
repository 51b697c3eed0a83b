"""Scores and rewards one group and writes down its rows.

Called by `produce` for each group as soon as its last rollout ends. Only rollouts that carry a
score have a reward; a reward function that fails takes its whole group out, as errors.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prime_core.api import HostError, Reward, Score, ScoredRollout
from prime_core.engines.planning import PlannedGroup
from prime_core.engines.turns import Rollout
from prime_core.store.schema import RolloutRow

if TYPE_CHECKING:
    from prime_core.hosting.pool import HostPool
    from prime_core.store.records import Dispatch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RowSource:
    """What every row of a submission has in common."""

    dispatch: Dispatch
    max_tokens: int
    temperature: float


async def finish_group(
    pool: HostPool,
    group: PlannedGroup,
    rollouts: Sequence[Rollout],
    source: RowSource,
    proofs: Sequence[bytes],
) -> list[RolloutRow]:
    """Score and reward a group; its rows in sample order.

    Args:
        proofs: of each rollout; empty where nothing is committed to.

    Raises:
        HostError: no host of the environment can be started any more.
    """
    scores = await _score(pool, rollouts)
    rewards: dict[int, Reward] = {}
    scored = [index for index, score in enumerate(scores) if score.value is not None]
    if scored:
        members = [ScoredRollout(rollouts[index].completion(), scores[index]) for index in scored]
        try:
            found = await pool.reward(
                group.task, members, group.length_budget, source.dispatch.step
            )
        except HostError as error:
            logger.error("group %s: no reward: %s", group.group_id, error)
            detail = {"kind": error.kind, "detail": f"reward: {error.what}"}
            for index in scored:
                scores[index] = Score(None, "error", evidence=detail)
        else:
            rewards = dict(zip(scored, found, strict=True))
    return [
        _row(source, group, sample, rollout, proofs[sample], scores[sample], rewards.get(sample))
        for sample, rollout in enumerate(rollouts)
    ]


async def _score(pool: HostPool, rollouts: Sequence[Rollout]) -> list[Score]:
    """One score a rollout; a rollout that failed before isn't shown to the verifier."""
    scores = [
        Score(None, "error", evidence={"kind": "rollout", "detail": rollout.failure})
        for rollout in rollouts
    ]
    whole = [index for index, rollout in enumerate(rollouts) if not rollout.failure]
    items = [(rollouts[index].task, rollouts[index].completion()) for index in whole]
    found = await pool.score(items) if items else []
    for index, score in zip(whole, found, strict=True):
        scores[index] = score
        if score.status == "error":
            logger.warning("rollout %s: not scored: %s", rollouts[index].id, dict(score.evidence))
    return scores


def _row(
    source: RowSource,
    group: PlannedGroup,
    sample: int,
    rollout: Rollout,
    proofs: bytes,
    score: Score,
    reward: Reward | None,
) -> RolloutRow:
    dispatch = source.dispatch
    return RolloutRow(
        environment=group.environment,
        task_id=group.task_id,
        group_id=group.group_id,
        sample=sample,
        step=dispatch.step,
        policy_version=dispatch.policy_version,
        node=dispatch.node,
        submission=dispatch.n,
        max_tokens=source.max_tokens,
        prompt_tokens=list(rollout.prompt_tokens),
        completion_tokens=rollout.tokens,
        completion_mask=rollout.mask,
        completion_logprobs=rollout.logprobs,
        finish_reason=rollout.finish_reason,
        length_budget=group.length_budget,
        sampling_seed=rollout.seed,
        temperature=source.temperature,
        score=score.value,
        score_status=score.status,
        reward=None if reward is None else reward.total,
        reward_parts={} if reward is None else dict(reward.parts),
        proofs=proofs,
        policy_digest=bytes.fromhex(dispatch.policy_digest),
        turn_ends=rollout.turn_ends,
    )
