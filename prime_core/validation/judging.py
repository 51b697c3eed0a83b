"""Judges one file: asks the checks in order, stops at the first rejection, makes the verdict.

Called by the validator and by `prime-core validate`. The answer depends on the bytes, the seed, the
node's record and the run alone. A check that raises costs the file its turn and accuses nobody.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from prime_core.api import (
    Finding,
    FormatError,
    HostError,
    PrimeError,
    SanityCheck,
    StoreError,
)
from prime_core.store.records import Dispatch
from prime_core.store.verdicts import (
    MAX_FINDINGS,
    CheckRun,
    DroppedGroup,
    Verdict,
    VerdictFinding,
)
from prime_core.validation.context import FileContext

logger = logging.getLogger("prime_core.validator")

UNJUDGED = "validator"  # the check that a file names which nobody could judge
MAX_REASON = 500
MACHINE = frozenset(  # errors that say that this machine is full or broken
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "ENFILE", "ENOMEM")
)
COSTLY = ("row", "model")  # stages in which `context.rows` may be a part


@dataclass(frozen=True, slots=True)
class NamedCheck:
    """A selected sanity check and its plugin's name."""

    name: str
    check: SanityCheck


@dataclass(slots=True)
class Judgement:
    """What the checks said of one file.

    Attributes:
        found: findings with the check's name, in order.
        asked: checks with the rows that each looked at.
        seconds: what each check took, also where it raised.
        failure: the check that raised and what; None where none did.
    """

    found: list[tuple[str, Finding]] = field(default_factory=list)
    asked: list[CheckRun] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    failure: tuple[str, str] | None = None

    @property
    def grave(self) -> tuple[str, Finding] | None:
        """The finding that decides: the gravest of the first check that rejects."""
        found = [each for each in self.found if each[1].severity in ("reject", "slash")]
        slashing = [each for each in found if each[1].severity == "slash"]
        return next(iter(slashing or found), None)


def ask(checks: Sequence[NamedCheck], context: FileContext) -> Judgement:
    """Ask the checks in order until one rejects or raises.

    Raises:
        StoreError, HostError: the store or a host of ours fails; the file is to be judged later.
    """
    judgement = Judgement()
    for named in checks:
        started = time.perf_counter()
        context.asked(named.name)
        try:
            findings = _ask(named, context)
        except (StoreError, HostError):
            raise  # ours, not the file's: the store or a host is away
        except Exception as error:
            if isinstance(error, OSError) and error.errno in MACHINE:
                raise StoreError(str(error), where=f"check {named.name}", fix="mend it") from error
            said = error.what if isinstance(error, PrimeError) else str(error)
            what = f"{type(error).__name__}: {said}"
            logger.exception("check %s can't judge %s", named.name, context.view.sha256)
            judgement.failure = (named.name, what)
            return judgement
        finally:
            judgement.seconds[named.name] = time.perf_counter() - started
        judgement.asked.append(CheckRun(named.name, _looked_at(named.check, context)))
        judgement.found += [(named.name, finding) for finding in findings]
        if judgement.grave is not None:
            return judgement
    return judgement


def _ask(named: NamedCheck, context: FileContext) -> Sequence[Finding]:
    if named.check.stage != "file":
        try:
            context.decode()
        except FormatError as error:  # no check `schema` stands before this one to say so
            where = f"{error.where}: " if error.where else ""
            return [Finding("reject", f"{where}{error.what}")]
    found = list(named.check.check(context.view, context))
    rows = range(len(context.view.rows))
    for finding in found:
        if (finding.row is not None and finding.row not in rows) or (finding.chunk or 0) < 0:
            raise ValueError(f"it names row {finding.row}, chunk {finding.chunk}")
    return found


def _looked_at(check: SanityCheck, context: FileContext) -> int:
    return len(context.rows) if check.stage in COSTLY else len(context.view.rows)


def verdict_of(judgement: Judgement, context: FileContext, audit: str, *, trusted: bool) -> Verdict:
    """The verdict that follows.

    Args:
        audit: the validator's signature that seeded the draws.
        trusted: whether the file is known to come from the node: where it isn't, nobody is slashed.

    Raises:
        StoreError: the statement can't be read now.
    """
    view = context.view
    severity = check = reason = ""
    if judgement.failure is not None:
        severity, check = "drop", UNJUDGED
        reason = _clean(f"check {judgement.failure[0]} failed: {judgement.failure[1]}")
    elif (grave := judgement.grave) is not None:
        check, finding = grave
        severity = finding.severity if trusted else "reject"
        reason = _clean(_worded(finding))
    decided = ("reject", "slash") if severity else ("drop",)
    causes = [finding for _, finding in judgement.found if finding.severity in decided]
    dropped: dict[str, DroppedGroup] = {}
    for name, finding in judgement.found if not severity else ():
        if finding.severity == "drop" and finding.row is not None:
            group = view.rows[finding.row].group_id
            dropped.setdefault(group, DroppedGroup(group, name, _clean(finding.reason)))
    return Verdict(
        run_id=context.run.run_id,
        step=view.step,
        node=view.node,
        n=view.n,
        sha256=view.sha256,
        size=view.size,
        groups=view.groups,
        signed=context.is_signed(),
        decision="rejected" if severity else "accepted",
        severity=severity,  # type: ignore[arg-type]
        check=check,
        reason=reason,
        findings=tuple(
            VerdictFinding(name, f.severity, _clean(f.reason), f.row, f.chunk)
            for name, f in judgement.found[:MAX_FINDINGS]
        ),
        dropped=tuple(dropped.values()),
        checks=tuple(judgement.asked),
        full=context.full,
        audit=audit,
        blameless=bool(causes) and all(finding.blameless for finding in causes),
    )


def unjudgeable(
    run_id: str,
    dispatch: Dispatch,
    sha256: str,
    size: int,
    audit: str,
    check: str,
    reason: str,
    severity: str,
) -> Verdict:
    """The rejection of a file that no check was asked about, so that nobody surely signed it."""
    return Verdict(
        run_id=run_id,
        step=dispatch.step,
        node=dispatch.node,
        n=dispatch.n,
        sha256=sha256,
        size=size,
        groups=dispatch.groups,
        signed=False,
        decision="rejected",
        severity=severity,  # type: ignore[arg-type]
        check=check,
        reason=_clean(reason),
        findings=(),
        dropped=(),
        checks=(),
        full=True,
        audit=audit,
    )


def _worded(finding: Finding) -> str:
    place = "" if finding.row is None else f"row {finding.row}: "
    chunk = "" if finding.chunk is None else f"chunk {finding.chunk}: "
    return f"{place}{chunk}{finding.reason}"


def _clean(text: str) -> str:
    """One line of printable ASCII: parts of it come from the sender."""
    line = text.encode("ascii", "backslashreplace").decode()
    return "".join(char if char.isprintable() else " " for char in line)[:MAX_REASON]
