"""Judges one submission: schema, dispatch, policy, assignment, bounds, then its groups.

The intake calls it once per submission with the bytes it read once. The answer depends on the
bytes, the dispatch and the run's lock alone: not on time, order or other submissions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, cast

from prime_core.api.errors import FormatError, PluginError
from prime_core.api.protocols import GroupFilter
from prime_core.api.types import (
    Completion,
    FinishReason,
    Message,
    Reward,
    RewardedGroup,
    Score,
    ScoredGroup,
    ScoredRollout,
    ScoreStatus,
    Task,
)
from prime_core.store.assigner import Assigner, SampleFacts
from prime_core.store.checks import Limits, check_submission
from prime_core.store.counter import StepRules
from prime_core.store.records import Dispatch, GroupReceipt, GroupStatus
from prime_core.store.schema import RolloutRow
from prime_core.store.submission import FILE_LIMIT, Submission, read_submission

MIN_SCORED = 2  # a baseline of one rollout says nothing
MAX_REASON = 1000  # characters of a receipt's reason; parts of it come from the sender
Decode: TypeAlias = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class OnlineFilter:
    """An online data filter with the names that its errors and receipts show."""

    name: str
    distribution: str | None
    filter: GroupFilter


@dataclass(frozen=True, slots=True)
class Judgement:
    """The word on one submission.

    Attributes:
        reason: why it's refused, check name first; "" where accepted.
        groups: one entry a group where accepted.
        facts: one entry a rollout where accepted.
        finished: groups with enough scored rollouts, as filters and observers see them.
    """

    reason: str
    groups: tuple[GroupReceipt, ...] = ()
    facts: tuple[SampleFacts, ...] = ()
    finished: tuple[RewardedGroup, ...] = ()


class Judge:
    """Judges the submissions of one run.

    Args:
        rules, limits: what the run allows.
        max_groups, group_size: of one submission.
        assigner: recomputes what a node had to generate.
        seal_of: seal (32 bytes) of a sealed policy version.
        filters: online filters in the config's order.
        decode: text of token ids for filters and observers; None leaves texts empty.
    """

    def __init__(
        self,
        rules: StepRules,
        limits: Limits,
        *,
        max_groups: int,
        group_size: int,
        assigner: Assigner,
        seal_of: Callable[[int], bytes],
        filters: Sequence[OnlineFilter] = (),
        decode: Decode | None = None,
    ) -> None:
        self._rules, self._limits = rules, limits
        self._max_groups, self._group_size = max_groups, group_size
        self._assigner, self._seal_of = assigner, seal_of
        self._filters, self._decode = list(filters), decode

    def judge(
        self,
        data: bytes,
        dispatch: Dispatch,
        newest_version: int,
        dropped: Mapping[str, str] = MappingProxyType({}),
    ) -> Judgement:
        """Judge the bytes of the submission that a dispatch announced.

        Args:
            dropped: groups that may not train, with the reason, as a verdict says.

        Raises:
            PluginError: an online filter raises or answers nonsense.
        """
        reason = self._dispatch_problem(dispatch, newest_version)
        if reason:
            return Judgement(reason)
        try:
            submission = read_submission(data, limit=FILE_LIMIT)
        except FormatError as error:
            where = f"{error.where}: " if error.where else ""
            return Judgement(f"schema: {where}{error.what}"[:MAX_REASON])
        reasons = check_submission(submission, dispatch, self._limits)
        reasons += self._assignment_problems(submission, dispatch) if not reasons else []
        if reasons:
            return Judgement("; ".join(reasons)[:MAX_REASON])
        return self._accept(submission, dropped)

    def _dispatch_problem(self, dispatch: Dispatch, newest_version: int) -> str:
        if dispatch.run_id != self._limits.run_id:
            return "run: the dispatch names another run id"
        if dispatch.groups > self._max_groups or dispatch.group_size != self._group_size:
            return f"dispatch: {dispatch.groups} groups of {dispatch.group_size} isn't allowed"
        node_class = self._limits.class_of(dispatch.node)
        if dispatch.node_class != node_class:
            return f"dispatch: the class is {node_class}, whatever a node names"
        version = dispatch.policy_version
        if version > newest_version or not self._rules.allows(dispatch.step, version):
            return f"version: step {dispatch.step} doesn't allow version {version} now"
        if self._seal_of(version).hex() != dispatch.policy_digest:
            return f"digest: the dispatch doesn't name the seal of version {version}"
        return ""

    def _assignment_problems(self, submission: Submission, dispatch: Dispatch) -> list[str]:
        rows = submission.groups()
        for assigned, task_id in self._assigner.groups(dispatch):
            group = rows[assigned.group_id]
            where = f"group {assigned.group_id}"
            if group[0].environment != assigned.environment:
                return [f"environment: {where} isn't of {assigned.environment}"]
            if group[0].task_id != task_id:
                return [f"task: {where} isn't task {task_id}"]
            if tuple(row.sampling_seed for row in group) != assigned.seeds:
                return [f"seeds: {where} has other sampling seeds than assigned"]
        return []

    def _accept(self, submission: Submission, dropped: Mapping[str, str]) -> Judgement:
        receipts, finished = [], []
        for group_id, rows in submission.groups().items():
            scored = [row for row in rows if row.reward is not None]
            if group_id in dropped:
                reason = dropped[group_id][:MAX_REASON]
                receipts.append(GroupReceipt(group_id, "dropped", reason, len(scored)))
                continue
            if len(scored) < MIN_SCORED:
                reason = f"{len(scored)} of {len(rows)} rollouts scored"
                receipts.append(GroupReceipt(group_id, "unscored", reason, len(scored)))
                continue
            group = self._rewarded(group_id, scored)
            finished.append(group)
            status, reason = self._filter(group)
            receipts.append(GroupReceipt(group_id, status, reason, len(scored)))
        return Judgement("", tuple(receipts), sample_facts(submission), tuple(finished))

    def _filter(self, group: RewardedGroup) -> tuple[GroupStatus, str]:
        for online in self._filters:
            try:
                decision = online.filter.keep_group(group)
                keep, reason = bool(decision.keep), str(decision.reason)
            except Exception as error:
                raise PluginError(
                    f"keep_group raised {type(error).__name__}: {error} on group {group.id}",
                    plugin=f"data_filter.{online.name}",
                    distribution=online.distribution,
                    phase="working",
                    fix="correct the filter, or take it out of filters.online; then resume",
                ) from error
            if not keep:
                constant = has_equal_rewards(group) or has_equal_scores(group)
                reason = f"{online.name}: {reason}"[:MAX_REASON]
                return "zero_signal" if constant else "filtered", reason
        return "signal", ""

    def _rewarded(self, group_id: str, rows: Sequence[RolloutRow]) -> RewardedGroup:
        first = rows[0]
        rollouts = tuple(
            ScoredRollout(
                Completion(
                    *self._words(row),
                    finish_reason=cast("FinishReason", row.finish_reason),
                    token_count=row.length,
                ),
                Score(row.score, cast("ScoreStatus", row.score_status)),
            )
            for row in rows
        )
        rewards = tuple(
            Reward(row.reward, row.reward_parts) for row in rows if row.reward is not None
        )
        task = Task(first.task_id, self._prompt(first))
        group = ScoredGroup(task, rollouts, first.length_budget, first.step)
        return RewardedGroup(group_id, first.environment, group, rewards)

    def _prompt(self, row: RolloutRow) -> tuple[Message, ...]:
        """One user message: what the tokens say, whatever roles the chat template gave them."""
        if self._decode is None:
            return ()
        return (Message("user", self._decode(row.prompt_tokens)),)

    def _words(self, row: RolloutRow) -> tuple[str, tuple[Message, ...]]:
        """The model's last turn, and all turns, decoded; the environment speaks as user."""
        if self._decode is None:
            return "", ()
        messages, start = [], 0
        for end in row.turn_ends:
            spoken = start
            while not row.completion_mask[spoken]:
                spoken += 1
            if spoken > start:
                messages.append(Message("user", self._decode(row.completion_tokens[start:spoken])))
            messages.append(Message("assistant", self._decode(row.completion_tokens[spoken:end])))
            start = end
        return messages[-1].content if messages else "", tuple(messages)


def sample_facts(submission: Submission) -> tuple[SampleFacts, ...]:
    """What the outcome rows of an accepted submission say beside the fates."""
    return tuple(
        SampleFacts(
            row.group_id,
            row.sample,
            row.environment,
            row.task_id,
            row.score_status,
            row.score,
            row.reward,
            row.length,
        )
        for row in submission.rows
    )


def has_equal_rewards(group: RewardedGroup) -> bool:
    """Whether all total rewards are exactly equal."""
    return len({reward.total for reward in group.rewards}) == 1


def has_equal_scores(group: RewardedGroup) -> bool:
    """Whether all task rewards (scores) are exactly equal."""
    return len({rollout.score.value for rollout in group.group.rollouts}) == 1
