"""The validator process: judges submitted files and signs what it found, until the run is over.

`run` is the main of `prime-core validator`. A verdict is written once; whatever kills the process,
the next one goes on with the files that have none, and judges each as this one would have.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from prime_core.api import (
    FormatError,
    HostError,
    NodeFacts,
    StoreError,
    SubmissionView,
)
from prime_core.store import layout
from prime_core.store.objects import ObjectExistsError
from prime_core.store.polling import poll_until_finished
from prime_core.store.records import Dispatch, Key
from prime_core.store.submission import FILE_LIMIT
from prime_core.store.verdicts import Verdict, write_verdict
from prime_core.store.view import StoreView, step_numbers
from prime_core.validation.attempts import MOST
from prime_core.validation.auditing import Owners, Records, audit
from prime_core.validation.context import FileContext, Surroundings, uniform
from prime_core.validation.decoys import is_due, prove
from prime_core.validation.judging import (
    UNJUDGED,
    Judgement,
    ask,
    unjudgeable,
    verdict_of,
)
from prime_core.validation.put_off import MOST as MOST_PUT_OFF
from prime_core.validation.put_off import PutOff
from prime_core.validation.reporting import metrics_of
from prime_core.validation.statements import read_statement
from prime_core.validation.tools import ValidatorTools

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

__all__ = ["Validator", "ValidatorTools", "run"]

logger = logging.getLogger("prime_core.validator")

SAY_EVERY_S = 30.0
UNREAD = "0" * 64  # SHA-256 in the verdict on a file above the size limit, which nobody reads


class Validator:
    """One validator of one run; `poll` judges at most one file."""

    def __init__(self, tools: ValidatorTools) -> None:
        self._tools = tools
        self.view = StoreView(tools.store, tools.rules)
        self._owners, self._put_off = Owners(), PutOff()
        self._records = Records(full_groups=tools.facts_of(tools.default_class).max_groups)
        for step in step_numbers(tools.store):
            self._learn(tools.book.refresh(step))

    @property
    def finished(self) -> bool:
        """Whether the run needs no more verdicts: its last version is sealed."""
        return self.view.newest_version >= self._tools.rules.steps

    def poll(self) -> bool:
        """Judge one file if one waits; whether it did.

        Raises:
            RunError: a decoy passed, so that no verdict of this validator can be believed.
            PrimeError: the store can't be read or written.
        """
        self.view.refresh()
        for step in range(max(0, self.view.first_open - 8), self.view.last_listed + 1):
            self._learn(self._tools.book.refresh(step))
        ready = self._tools.pending.files(
            self.view,
            judged=lambda key: bool(self._tools.book.of(key)),
            stated=lambda key: self._tools.store.exists(layout.submission_signature_path(*key)),
            loaded=self._tools.recomputer.loaded,
            stuck=self._put_off.is_stuck,
        )
        key = self._put_off.first(ready)
        if key is None:
            return False
        if self._tools.trace is None:
            self._judge(key, self.view.dispatches[key])
        else:
            with self._tools.trace.span("validate", step=key[0], node=key[1], n=key[2]):
                self._judge(key, self.view.dispatches[key])
        return True

    def waiting_for(self) -> str:
        """For whom the validator waits, in words."""
        return f"submissions of step {self.view.first_open} and later"

    def _learn(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            self._records.add(verdict)
            self._owners.add(verdict)

    # --- one file ---------------------------------------------------------------------------------

    def _judge(self, key: Key, dispatch: Dispatch) -> None:
        """Judge a file and write its verdict; where the store or a host fails, put it off."""
        step, node, n = key
        before: int | None = None
        try:
            before = self._tools.attempts.begin(key)
            decoy = self._decide(key, dispatch, before)
            self._tools.attempts.end(key)
        except (StoreError, HostError) as error:
            pause = self._put_off.put(key)
            logger.error("%s-%05d of step %d: again in %.0f s: %s", node, n, step, pause, error)
            self._tools.log(step, {"validator/postponed": 1})
            if before is not None:
                with suppress(StoreError):  # a disk that takes no note now
                    self._tools.attempts.withdraw(key, before)
            return
        if decoy is not None:
            decoy()

    def _decide(self, key: Key, dispatch: Dispatch, before: int) -> Callable[[], None] | None:
        """Write the verdict; the decoy that is due afterwards."""
        run_id = self._tools.run_id
        try:
            data = self._tools.store.get(layout.submission_path(*key), FILE_LIMIT)
        except FormatError as error:
            signature, _ = self._audit(key, UNREAD)
            why = ("schema", error.what, "reject")
            self._conclude(unjudgeable(run_id, dispatch, UNREAD, 0, signature, *why))
            return None
        sha256 = hashlib.sha256(data).hexdigest()
        if self._has_verdict(key, sha256):
            return None
        signature, seed = self._audit(key, sha256)
        reason, rejected = "", self._records.refused(key)
        if before >= MOST:
            reason = f"its judge ended {before} times before the verdict"
        elif rejected >= self._tools.policy.max_rejected:
            reason = f"{rejected} of the node's files of this step were rejected before it"
        context, around = self.open_file(key, dispatch, data, sha256, seed)
        started = time.perf_counter()
        try:
            judgement = Judgement() if reason else ask(self._tools.checks, context)
        except (StoreError, HostError) as error:
            if not self._put_off.is_hopeless(key):
                raise
            logger.error("%s is given up: %s", key, error)
            reason = f"it was put off {MOST_PUT_OFF} times, while others were judged"
        if reason:
            why = (UNJUDGED, reason, "drop")
            self._conclude(unjudgeable(run_id, dispatch, sha256, len(data), signature, *why))
            return None
        # nobody is slashed for what somebody else may have written under his name
        asked = any(check.check == "identity" for check in judgement.asked)
        trusted = asked and not any(name == "identity" for name, _ in judgement.found)
        verdict = verdict_of(judgement, context, signature, trusted=trusted)
        self._conclude(verdict, judgement, time.perf_counter() - started)
        if verdict.decision == "accepted":
            self._put_off.accepted()
        if verdict.decision != "accepted" or not is_due(seed, self._tools.decoy_every):
            return None
        dropped = {group.id for group in verdict.dropped}
        return lambda: prove(self._tools, context, around, seed, dropped)

    def _has_verdict(self, key: Key, sha256: str) -> bool:
        """Whether its verdict's place is taken; what lies there and is none is said once."""
        path = layout.verdict_path(*key, sha256)
        if not self._tools.store.exists(path):
            return False
        self._learn(self._tools.book.refresh(key[0]))
        if not self._tools.book.of(key):
            self._put_off.skip(key)
            logger.warning("%s is no verdict of this run's validators: its file gets none", path)
        return True

    def open_file(
        self,
        key: Key,
        dispatch: Dispatch,
        data: bytes,
        sha256: str,
        seed: bytes,
        *,
        full: bool | None = None,
    ) -> tuple[FileContext, Surroundings]:
        """The context of one file, nothing of it decoded; `full` None lets the seed decide.

        A node of whose files one of this step was rejected is checked in full: else it could leave
        out, unsigned, what it doesn't like, and keep its record.
        """
        node = self._node(key[1])
        if full is None:
            drawn = uniform(seed, "full") < self._tools.policy.share_for(node.clean)
            full = drawn or self._records.refused(key) > 0
        around = Surroundings(
            run=self._tools.facts_of(node.node_class),
            node=node,
            rules=self._tools.rules,
            newest_version=self.view.newest_version,
            recomputer=self._tools.recomputer,
            reader=self._tools.reader,
            statement=lambda: read_statement(self._tools.store, key),
            seen=lambda digest: self._owners.other(digest, key),
        )
        view = SubmissionView(
            run_id=dispatch.run_id,
            step=key[0],
            node=key[1],
            n=key[2],
            policy_version=dispatch.policy_version,
            policy_digest=dispatch.policy_digest,
            groups=dispatch.groups,
            group_size=dispatch.group_size,
            node_class=dispatch.node_class,
            sha256=sha256,
            size=len(data),
        )
        spot = self._tools.policy.spot_groups
        return FileContext(around, view, data, seed=seed, full=full, spot_groups=spot), around

    def _audit(self, key: Key, sha256: str) -> tuple[str, bytes]:
        return audit(self._tools.signer, self._tools.run_id, key, sha256)

    def _node(self, name: str) -> NodeFacts:
        record = self._records.of(name)
        known = self._tools.nodes.get(name)
        return NodeFacts(
            name=name,
            address=known.address if known else None,
            provider=known.provider if known else "",
            node_class=known.node_class if known else self._tools.default_class,
            stake=known.stake if known else 0,
            accepted=record.accepted,
            rejected=record.rejected,
            clean=record.clean,
        )

    def _conclude(
        self, verdict: Verdict, judgement: Judgement | None = None, seconds: float = 0.0
    ) -> None:
        try:
            write_verdict(self._tools.store, verdict, self._tools.signer)
        except ObjectExistsError:
            logger.info("%s has its verdict from another validator", verdict.key)
        self._learn(self._tools.book.refresh(verdict.step))
        if not self._tools.book.of(verdict.key):
            raise StoreError(
                "what lies in its verdict's place is no verdict of this run's validators",
                where=layout.verdict_path(*verdict.key, verdict.sha256),
                fix="remove the object, and let nobody else write verdicts",
            )
        self._put_off.end(verdict.key)
        if verdict.decision == "rejected":
            logger.warning(
                "step %d: submission %d of %s is rejected (%s) by %s: %s",
                *(verdict.step, verdict.n, verdict.node, verdict.severity),
                *(verdict.check, verdict.reason),
            )
        loads = self._tools.recomputer.loads
        metrics = metrics_of(verdict, judgement or Judgement(), seconds, loads)
        self._tools.log(verdict.step, metrics)


def run(config: RunConfig, index: int = 0) -> None:
    """The validator process: poll until the run is over, or until SIGTERM; blocks.

    Raises:
        PrimeError: the run isn't prepared, a plugin can't be made, or as `Validator.poll`.
    """
    from prime_core.validation.setup import open_tools

    with open_tools(config, index) as tools:
        validator = Validator(tools)
        tools.book.check_formats()
        poll_until_finished(
            validator,
            tools.store,
            lambda waits: tools.log(validator.view.first_open, waits),
            logger=logger,
            say_every_s=SAY_EVERY_S,
        )
