"""Judges submissions in this process by the validator's own code and the run's own checks, in full.

Checks that need no forward pass are asked first for every file, as in any order of checks; what
survives shares its forward passes with other files, and the remaining checks are asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prime_core.api import CheckContext, Finding, Stage, SubmissionView
from prime_core.store.records import Key
from prime_core.store.submission import Submission, read_submission
from prime_core.store.verdicts import Verdict
from prime_core.testing.attacks.attack import Attempt
from prime_core.validation.auditing import audit
from prime_core.validation.context import FileContext
from prime_core.validation.judging import Judgement, NamedCheck, ask, verdict_of
from prime_core.validation.reading import Reader
from prime_core.validation.statements import parse_statement
from prime_core.validation.validator import Validator

if TYPE_CHECKING:
    from prime_core.api import SanityCheck, Statement
    from prime_core.store.schema import RolloutRow
    from prime_core.testing.attacks.world import World

FORWARD = "forward pass"  # what the checks of stage `model` share, in the costs


@dataclass(slots=True)
class Judged:
    """A verdict, what it cost, and the context that it was reached in.

    Attributes:
        cpu: seconds of this process by check, hosts and reading process not included.
    """

    verdict: Verdict
    cpu: Mapping[str, float]
    context: FileContext

    @property
    def caught(self) -> bool:
        """Whether the file trains nothing."""
        return self.verdict.decision == "rejected"


@dataclass(slots=True)
class _Clocked:
    """A check, and the CPU seconds that its last call took."""

    check_: SanityCheck
    seconds: float = 0.0

    @property
    def stage(self) -> Stage:
        return self.check_.stage

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        started = time.process_time()
        try:
            return self.check_.check(submission, context)
        finally:
            self.seconds = time.process_time() - started


class _Here(Reader):
    """Decodes in this process."""

    def read(self, data: bytes, *, time_limit_s: float, memory_mb: int) -> Submission:
        return read_submission(data)


@dataclass(slots=True)
class _File:
    context: FileContext
    audited: str
    judgement: Judgement = field(default_factory=Judgement)
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def decided(self) -> bool:
        return self.judgement.grave is not None or self.judgement.failure is not None


class Judge:
    """A validator's judging of the harness's submissions.

    Args:
        checks: in order; those of the run by default.
    """

    def __init__(self, world: World, checks: Sequence[NamedCheck] | None = None) -> None:
        self._world = world
        tools = replace(world.tools, nodes={world.node.name: world.node})
        self._validator = Validator(tools)
        self._checks = [
            NamedCheck(each.name, _Clocked(each.check)) for each in checks or tools.checks
        ]

    def judge(self, attempts: Sequence[Attempt], *, apart: bool = True) -> list[Judged]:
        """One verdict a submission, in order.

        Args:
            apart: decode in the validator's own process for that; else here, by the same reader,
                which is for files that were written honestly.
        """
        files = [self._open(each, apart) for each in attempts]
        model = next(
            (i for i, each in enumerate(self._checks) if each.check.stage == "model"),
            len(self._checks),
        )
        self._ask(files, self._checks[:model])
        left = [each for each in files if not each.decided]
        share = self._compute(left)
        for each in left:
            each.cpu[FORWARD] = share
        self._ask(left, self._checks[model:])
        return [self._judged(each) for each in files]

    def _open(self, attempt: Attempt, apart: bool) -> _File:
        key: Key = attempt.dispatch.key
        sha256 = attempt.sha256
        tools = self._world.tools
        audited, seed = audit(tools.signer, tools.run_id, key, sha256)
        args = (key, attempt.dispatch, attempt.data, sha256, seed)
        context, around = self._validator.open_file(*args, full=True)
        known = replace(
            around,
            newest_version=self._world.newest_version,
            statement=lambda: _statement(attempt),
            seen=attempt.earlier.get,
            reader=around.reader if apart else _Here(),
        )
        context = FileContext(
            known, context.view, attempt.data, seed=seed, full=True, spot_groups=0
        )
        return _File(context, audited)

    def _ask(self, files: Sequence[_File], checks: Sequence[NamedCheck]) -> None:
        for file in files:
            for named in checks:
                if file.decided:
                    break
                said = ask([named], file.context)
                _merge(file.judgement, said)
                assert isinstance(named.check, _Clocked)
                file.cpu[named.name] = named.check.seconds

    def _compute(self, files: Sequence[_File]) -> float:
        """Forward passes of all rows of these files together; CPU seconds a file."""
        started = time.process_time()
        by_version: dict[int, list[RolloutRow]] = {}
        for file in files:
            rows = [row for row in _rows(file.context) if row.length]
            by_version.setdefault(file.context.view.policy_version, []).extend(rows)
        for version, rows in by_version.items():
            if version in self._world.policies and rows:
                self._world.prefill(rows, version)
        return (time.process_time() - started) / max(1, len(files))

    def _judged(self, file: _File) -> Judged:
        asked = any(check.check == "identity" for check in file.judgement.asked)
        trusted = asked and not any(name == "identity" for name, _ in file.judgement.found)
        verdict = verdict_of(file.judgement, file.context, file.audited, trusted=trusted)
        return Judged(verdict, file.cpu, file.context)


def _rows(context: FileContext) -> Sequence[RolloutRow]:
    return () if context.submission is None else context.submission.rows


def _merge(judgement: Judgement, said: Judgement) -> None:
    judgement.found += said.found
    judgement.asked += said.asked
    judgement.seconds.update(said.seconds)
    judgement.failure = judgement.failure or said.failure


def _statement(attempt: Attempt) -> Statement | None:
    if attempt.statement is None:
        return None
    return parse_statement(attempt.statement, where="the statement")
