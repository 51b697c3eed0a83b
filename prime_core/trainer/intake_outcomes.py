"""Turns fates into outcome rows, once per rollout.

The intake hands over every submission it has judged; `settle` returns the rows that are due and
aren't in the log yet, so that a restarted intake writes exactly what the killed one had not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from prime_core.api.errors import IntegrityError
from prime_core.store.assigner import Assigner, SampleFacts
from prime_core.store.checks import check_name
from prime_core.store.layout import submission_path
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog, OutcomeRow
from prime_core.store.records import Dispatch, Key, Receipt
from prime_core.store.submission import FILE_LIMIT, read_submission
from prime_core.trainer.intake_judge import sample_facts
from prime_core.trainer.intake_state import Fate, IntakeState


@dataclass(slots=True)
class _Pending:
    """A submission with rollouts that have no outcome yet; `facts` None until they're needed."""

    dispatch: Dispatch
    receipt: Receipt | None
    facts: Sequence[SampleFacts] | None


class Settler:
    """The submissions whose rollouts aren't all settled.

    Args:
        store: to read a submission again after a restart.
        log: the run's outcome log.
        assigner: names the tasks of submissions that nobody could read.
    """

    def __init__(self, store: ObjectStore, log: OutcomeLog, assigner: Assigner) -> None:
        self._store, self._log, self._assigner = store, log, assigner
        self._pending: dict[Key, _Pending] = {}

    def add(
        self,
        dispatch: Dispatch,
        receipt: Receipt | None,
        facts: Sequence[SampleFacts] | None = None,
    ) -> None:
        """Take over a judged submission, or one that never came (no receipt: it is lost)."""
        if not self._is_settled(dispatch):
            self._pending[dispatch.key] = _Pending(dispatch, receipt, facts)

    def settle(self, state: IntakeState) -> int:
        """Write the outcomes that are due; how many."""
        rows: list[OutcomeRow] = []
        open_keys: dict[Key, _Pending] = {}
        for key, pending in sorted(self._pending.items()):
            fates = self._fates(pending, state)
            rows += [
                _row(pending.dispatch, facts, fate)
                for facts, fate in fates
                if fate is not None and not self._log.has(facts.group_id, facts.sample)
            ]
            if any(fate is None for _, fate in fates):
                open_keys[key] = pending
        self._log.append(rows)
        self._pending = open_keys
        return len(rows)

    def spent(self, receipt: Receipt) -> list[str]:
        """Groups that ended as surplus when the run ended before; they can't train any more."""
        return [
            group.id for group in receipt.groups if "surplus" in self._log.outcomes_of(group.id)
        ]

    def _fates(
        self, pending: _Pending, state: IntakeState
    ) -> list[tuple[SampleFacts, Fate | None]]:
        receipt, dispatch = pending.receipt, pending.dispatch
        if pending.facts is None:
            pending.facts = self._facts(dispatch, receipt)
        if receipt is None:
            return [(facts, Fate("lost", dispatch.node)) for facts in pending.facts]
        if receipt.decision == "late":
            return [(facts, Fate("late")) for facts in pending.facts]
        if receipt.decision == "rejected":
            fate = Fate("rejected", check_name(receipt.reason))
            return [(facts, fate) for facts in pending.facts]
        groups = {group.id: group for group in receipt.groups}
        version = dispatch.policy_version
        return [
            (facts, state.fate(receipt, version, groups[facts.group_id], facts.status))
            for facts in pending.facts
        ]

    def _facts(self, dispatch: Dispatch, receipt: Receipt | None) -> Sequence[SampleFacts]:
        if receipt is None or receipt.decision != "accepted":
            return self._assigner.facts(dispatch)
        path = submission_path(*dispatch.key)
        data = self._store.get(path, FILE_LIMIT)
        if hashlib.sha256(data).hexdigest() != receipt.sha256:
            raise IntegrityError(
                "the file isn't the one that was accepted",
                where=path,
                fix="restore it; its receipt names the SHA-256",
            )
        return sample_facts(read_submission(data))

    def _is_settled(self, dispatch: Dispatch) -> bool:
        return all(
            self._log.has(f"{dispatch.step}-{dispatch.node}-{dispatch.n}-{k}", sample)
            for k in range(dispatch.groups)
            for sample in range(dispatch.group_size)
        )


def _row(dispatch: Dispatch, facts: SampleFacts, fate: Fate) -> OutcomeRow:
    trained = fate.trained_step
    return OutcomeRow(
        group_id=facts.group_id,
        sample=facts.sample,
        environment=facts.environment,
        task_id=facts.task_id,
        node=dispatch.node,
        submission=dispatch.n,
        step=dispatch.step,
        policy_version=dispatch.policy_version,
        outcome=fate.outcome,
        detail=fate.detail,
        trained_step=trained,
        lag=None if trained is None else trained - dispatch.policy_version,
        score=facts.score,
        reward=facts.reward,
        length=facts.length,
    )
