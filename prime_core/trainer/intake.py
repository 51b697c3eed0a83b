"""The intake process: judges submissions, closes steps, writes receipts, batches and outcomes.

`run` is the whole process; it ends when the run's last version is sealed. Everything it writes is
written once and follows from what is in the store, so that it may be killed at any instant.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import FormatError, RunError
from prime_core.store import layout
from prime_core.store.assigner import Assigner
from prime_core.store.counter import StepRules
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog
from prime_core.store.polling import poll_until_finished
from prime_core.store.records import Closed, Decision, Dispatch, Key, Receipt
from prime_core.store.submission import FILE_LIMIT
from prime_core.store.view import (
    members,
    newest_sealed,
    read_closed,
    read_dispatch,
    read_receipt,
    step_numbers,
)
from prime_core.trainer.intake_judge import Judge, Judgement
from prime_core.trainer.intake_outcomes import Settler
from prime_core.trainer.intake_report import report
from prime_core.trainer.intake_state import IntakeState
from prime_core.trainer.intake_verdicts import Ruling, VerdictGate

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig
    from prime_core.store.trace import Trace

logger = logging.getLogger("prime_core.intake")

SAY_EVERY_S = 10.0
UNREAD = "0" * 64  # SHA-256 in the receipt of a file above the size limit, which nobody reads

Log = Callable[[int | None, dict[str, Any]], None]
Notify = Callable[[str, dict[str, object]], None]


@dataclass(frozen=True)
class IntakeTools:
    """What the intake works with; `intake_setup` makes it from a run config.

    Attributes:
        log: records metrics of a step.
        notify: calls a notification hook of the observers.
        trace: spans of this process, or None.
        gate: the verdicts that receipts follow; None where nothing is validated.
    """

    store: ObjectStore
    run_id: str
    rules: StepRules
    judge: Judge
    assigner: Assigner
    log: Log
    notify: Notify
    trace: Trace | None = None
    gate: VerdictGate | None = None


class Intake:
    """The intake of one run; `poll` does what is to be done now."""

    def __init__(self, tools: IntakeTools) -> None:
        self._tools, self._store, self._rules = tools, tools.store, tools.rules
        self.state = IntakeState(tools.run_id, tools.rules)
        self._receipts: set[Key] = set()
        self._watched: set[int] = set()  # closed steps outside the window with open dispatches
        self._waiting: dict[Key, Dispatch] = {}  # for a verdict, or for their predecessors
        self._finished = False
        self._unsettled = True  # a killed intake may have decided more than it wrote
        self._settler = Settler(self._store, OutcomeLog(self._store), tools.assigner)
        self._restore()

    @property
    def finished(self) -> bool:
        """Whether the run is over and every dispatched rollout has its outcome."""
        return self._finished

    def poll(self) -> bool:
        """Judge what arrived, close what is full, write outcomes that are due; whether any was.

        Raises:
            PrimeError: a filter fails, the store can't be written, or its objects contradict
                each other.
        """
        before = self.state.newest_version
        self.state.newest_version = newest_sealed(self._store, before)
        work = self.state.newest_version != before
        for step in self._window():
            work |= self._receive_step(step)
        while (closed := self.state.next_batch()) is not None:
            self._close(closed)
            work = True
        if self.state.ended and not self._finished:
            self._sweep_all()
            self._finished = True
            work = True
        if work or self._unsettled:
            self._unsettled = False
            self._settler.settle(self.state)
        return work

    def waiting_for(self) -> str:
        """For whom the intake waits, in words."""
        step = self.state.first_open
        if step >= self._rules.steps:
            return f"the trainer to seal version {self._rules.steps}"
        missing = self._rules.groups_per_step - self.state.available()
        at_work = members(self._store, layout.dispatches_dir(step), step).keys() - self._receipts
        nodes = sorted({node for _, node, _ in at_work})
        who = (
            ", ".join(nodes)
            if nodes
            else f"any worker (newest version {self.state.newest_version})"
        )
        return f"{who} for {max(missing, 0)} groups with signal of step {step}"

    # --- the store's past ------------------------------------------------------------------------

    def _restore(self) -> None:
        self.state.newest_version = newest_sealed(self._store)
        while self._store.exists(layout.closed_path(self.state.first_open)):
            self.state.close(read_closed(self._store, self.state.first_open))
        for step in step_numbers(self._store):
            for key in sorted(members(self._store, layout.receipts_dir(step), step)):
                receipt = read_receipt(self._store, key)
                self._take_in(receipt, self._dispatch(key), None)
        self._watched.update(step for step in range(self._window().start) if self._is_open(step))

    def _take_in(
        self, receipt: Receipt, dispatch: Dispatch | None, judgement: Judgement | None
    ) -> None:
        version = dispatch.policy_version if dispatch else 0
        spent = self._settler.spent(receipt)
        self._check_given_up(spent)
        self.state.receive(receipt, version, spent)
        self._receipts.add(receipt.key)
        if dispatch is not None:
            facts = judgement.facts if judgement and receipt.decision == "accepted" else None
            self._settler.add(dispatch, receipt, facts)

    def _check_given_up(self, spent: list[str]) -> None:
        """A batch that was given up when the run was cut short can't be trained after all."""
        steps = [step for each in spent if (step := self.state.step_of(each)) is not None]
        if steps and min(steps) < self._rules.steps:
            raise RunError(
                f"the run was cut short before step {min(steps)}, and its rollouts were written "
                f"off as surplus; with trainer.steps = {self._rules.steps} it would be trained",
                where=layout.closed_path(min(steps)),
                fix=f"keep trainer.steps at {min(steps)} or lower, or start a new run",
            )

    def _dispatch(self, key: Key) -> Dispatch | None:
        found = self._store.exists(layout.dispatch_path(*key))
        return read_dispatch(self._store, key) if found else None

    # --- submissions -----------------------------------------------------------------------------

    def _window(self) -> range:
        """Steps that are looked at in every poll: the open ones and those closed lately."""
        slack = self._rules.max_lag - self._rules.level
        newest = min(self._rules.steps - 1, self.state.newest_version + self._rules.max_lag)
        return range(max(0, self.state.first_open - slack - 2), newest + 1)

    def _receive_step(self, step: int) -> bool:
        found = members(self._store, layout.submissions_dir(step), step)
        new = sorted(key for key in found if key not in self._receipts)
        if new and self._tools.gate is not None:
            self._tools.gate.refresh(step)
        return sum(self._receive_one(key) for key in new) > 0

    def _receive_one(self, key: Key) -> bool:
        """Write a submission's receipt; False where it waits for its verdict or predecessor."""
        dispatch = self._waiting[key] if key in self._waiting else self._dispatch(key)
        late = dispatch is not None and self.state.is_late(key[0], dispatch.policy_version)
        gate = self._tools.gate
        if dispatch and gate and not late and not gate.is_ready(key, self._receipts):
            self._waiting[key] = dispatch
            return False
        self._waiting.pop(key, None)
        if self._tools.trace is None:
            self._receive(key, dispatch, late)
        else:
            with self._tools.trace.span("intake", step=key[0], node=key[1], n=key[2]):
                self._receive(key, dispatch, late)
        return True

    def _receive(self, key: Key, dispatch: Dispatch | None, late: bool) -> None:
        """Write the receipt of one submission: refused, late, or accepted group by group."""
        sha256, judgement = UNREAD, Judgement("")
        try:
            data = self._store.get(layout.submission_path(*key), FILE_LIMIT)
        except FormatError as error:
            judgement = Judgement(f"schema: {error.what}")
        else:
            sha256 = hashlib.sha256(data).hexdigest()
        if dispatch is None:
            judgement = Judgement("dispatch: nobody announced this submission")
        elif not late and not judgement.reason:
            judgement = self._judge(key, data, sha256, dispatch)
        decision: Decision = "late" if late else "rejected" if judgement.reason else "accepted"
        reason = "every step that it may serve is closed" if late else judgement.reason
        groups = judgement.groups if decision == "accepted" else ()
        receipt = Receipt(self._tools.run_id, *key, sha256, decision, reason, groups)
        self._store.put(layout.receipt_path(*key), receipt.to_json())
        self._take_in(receipt, dispatch, judgement)
        report(self._tools, receipt, judgement, self.state.available())

    def _judge(self, key: Key, data: bytes, sha256: str, dispatch: Dispatch) -> Judgement:
        ruling = self._tools.gate.rule(key, sha256) if self._tools.gate else Ruling()
        if ruling.reason:
            return Judgement(ruling.reason)
        newest = newest_sealed(self._store, self.state.newest_version)
        return self._tools.judge.judge(data, dispatch, newest, ruling.dropped)

    # --- steps -----------------------------------------------------------------------------------

    def _close(self, closed: Closed) -> None:
        self._store.put(layout.closed_path(closed.step), closed.to_json())
        before = self._window().start
        self.state.close(closed)
        newest = self.state.newest_version
        self._tools.log(
            closed.step,
            {
                "intake/closed_groups": len(closed.groups),
                "intake/queue": self.state.available(),
                "intake/newest_version": newest,
                "intake/steps_ahead": closed.step - newest,
            },
        )
        if self._tools.trace is not None:
            self._tools.trace.instant("closed", step=closed.step, newest_version=newest)
        left = set(range(before, self._window().start)) | self._watched
        for step in sorted(left):  # stragglers of steps that no poll looks at any more
            self._receive_step(step)
        self._watched = {step for step in left if self._is_open(step)}

    def _is_open(self, step: int) -> bool:
        dispatched = members(self._store, layout.dispatches_dir(step), step)
        return any(key not in self._receipts for key in dispatched)

    def _sweep_all(self) -> None:
        """At the run's end: what arrived unseen is late, what was dispatched and never came, lost.

        A dispatch that is written after this stays in flight until the intake is run once more.
        """
        for step in step_numbers(self._store):
            self._receive_step(step)
            for key in sorted(members(self._store, layout.dispatches_dir(step), step)):
                dispatch = None if key in self._receipts else self._dispatch(key)
                if dispatch is not None:
                    self._settler.add(dispatch, None)


def run(config: RunConfig) -> None:
    """The intake process of a run: poll until the run is over.

    Raises:
        PrimeError: as `Intake.poll`; a restarted intake goes on where this one stopped.
    """
    from prime_core.trainer.intake_setup import open_tools

    tools = open_tools(config)
    intake = Intake(tools)
    poll_until_finished(
        intake,
        tools.store,
        lambda waits: tools.log(intake.state.first_open, waits),
        logger=logger,
        say_every_s=SAY_EVERY_S,
    )
