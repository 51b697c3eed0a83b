"""Scores and rewards of submitted rows, by the validator's own hosts of the same plugins.

Called by `recompute`. Only groups of which every row is asked for get rewards, as a reward function
sees the whole group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prime_core.api import HostError, Reward, RolloutView, Score, ScoredRollout
from prime_core.api.check_facts import Rescored
from prime_core.validation.conversation import Conversation, Endings, rebuild

if TYPE_CHECKING:
    from prime_core.engines.chat import ChatFormat
    from prime_core.engines.planning import PlannedGroup
    from prime_core.hosting.pool import HostPool

# evidence of the built-in graders and hosts that a limit of time or memory decided
LIMITED = frozenset({"time_limit", "memory_limit", "output_limit", "timeout", "memory"})


@dataclass(frozen=True, slots=True)
class Rescorer:
    """What scoring depends on besides the rows."""

    pools: Mapping[str, HostPool]
    chat: ChatFormat
    endings: Endings

    async def rescore(
        self, group: PlannedGroup, rows: Sequence[RolloutView], step: int
    ) -> list[Rescored]:
        """The rows of one group, in order.

        Raises:
            HostError: no host of the environment can be started any more.
        """
        pool = self.pools[group.environment]
        conversations = [Conversation(row, group.task, group.prompt) for row in rows]
        whole = [one for one in conversations if one.row.length and not group.failure]
        await rebuild(whole, self.chat, pool, self.endings)
        scores = await _score(conversations, whole, pool)
        rewards = await _rewards(pool, group, conversations, scores, step)
        claimed: list[Reward | None] = [None] * len(rows)
        theirs = _claimed(rows, scores)
        if theirs != scores and not pool.description.info.deterministic:
            claimed = await _rewards(pool, group, conversations, theirs, step)
            if not any(claimed):
                scores = theirs  # the reward function failed: they are errors now
        return [
            Rescored(
                score,
                None if reward is None else reward.total,
                {} if reward is None else dict(reward.parts),
                limited=_is_limited(pool, one.row, score),
                mismatch=one.mismatch,
                claimed=given,
            )
            for one, score, reward, given in zip(
                conversations, scores, rewards, claimed, strict=True
            )
        ]


async def _score(
    conversations: Sequence[Conversation], whole: Sequence[Conversation], pool: HostPool
) -> list[Score]:
    """A score a row; what can't be shown to the verifier is an error, as it is for a worker."""
    shown = [one for one in whole if one.goes_on]
    found = await pool.score([(one.task, one.completion()) for one in shown]) if shown else []
    by_id = {id(one): score for one, score in zip(shown, found, strict=True)}
    failed = Score(None, "error", evidence={"kind": "rollout"})
    return [by_id.get(id(one), failed) for one in conversations]


def _claimed(rows: Sequence[RolloutView], scores: Sequence[Score]) -> list[Score]:
    """Our scores with the node's values in them, where both are of one status."""

    def of_node(row: RolloutView, score: Score) -> Score:
        if score.value is None or row.score is None or row.score_status != score.status:
            return score
        # a file holds float32: what it rounded to is no other value
        return score if row.score == np.float32(score.value) else replace(score, value=row.score)

    return [of_node(row, score) for row, score in zip(rows, scores, strict=True)]


async def _rewards(
    pool: HostPool,
    group: PlannedGroup,
    conversations: Sequence[Conversation],
    scores: list[Score],
    step: int,
) -> list[Reward | None]:
    """A reward where there is a score; a reward function that fails takes the group out."""
    scored = [index for index, score in enumerate(scores) if score.value is not None]
    rewards: list[Reward | None] = [None] * len(scores)
    if not scored:
        return rewards
    members = [ScoredRollout(conversations[index].completion(), scores[index]) for index in scored]
    try:
        found = await pool.reward(group.task, members, group.length_budget, step)
    except HostError as error:
        for index in scored:
            scores[index] = Score(None, "error", evidence={"kind": error.kind})
        return rewards
    for index, reward in zip(scored, found, strict=True):
        rewards[index] = reward
    return rewards


def _is_limited(pool: HostPool, row: RolloutView, score: Score) -> bool:
    """Whether a limit of this machine or, as far as can be told, of the node's decided."""
    if _limits(score.evidence):
        return True
    sandboxed = any(need.startswith("sandbox") for need in pool.description.info.needs)
    theirs, ours = row.score_status, score.status
    return sandboxed and theirs != ours and "invalid_output" in (theirs, ours)


def _limits(evidence: Mapping[str, Any]) -> bool:
    statuses = evidence.get("statuses")
    said = [evidence.get("kind"), evidence.get("status")]
    said += list(statuses) if isinstance(statuses, Mapping) else []
    return any(isinstance(one, str) and one in LIMITED for one in said)
