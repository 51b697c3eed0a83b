"""Known-bad files that the validator shows itself, to prove that its checks work.

After an accepted file the validator now and then has one of its checks spoil a copy, and judges
that in full. A copy that passes means that nothing which this validator accepted can be believed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from prime_core.api import FormatError, HostError, RunError, Statement, StoreError, SubmissionView
from prime_core.store.schema import RolloutRow
from prime_core.store.submission import Submission, write_submission
from prime_core.validation.context import FileContext, Surroundings, below, uniform
from prime_core.validation.judging import Judgement, NamedCheck, ask

if TYPE_CHECKING:
    from prime_core.validation.tools import ValidatorTools

logger = logging.getLogger("prime_core.validator")


FAILING = "a failing check"  # what finds a decoy over which a check raises


@dataclass(frozen=True, slots=True)
class Decoy:
    """A spoilt copy: whose decoy it is, and what the checks said of it."""

    check: str
    found_by: str

    @property
    def missed(self) -> bool:
        """Whether something spoilt would have trained."""
        return not self.found_by


def prove(
    tools: ValidatorTools,
    context: FileContext,
    around: Surroundings,
    seed: bytes,
    dropped: Collection[str],
) -> None:
    """Show the validator a decoy after an accepted file, where one can be made, and say whose.

    Raises:
        RunError: it passed.
    """
    try:
        decoy = show_decoy(tools.checks, context, around, seed, dropped)
    except (StoreError, HostError) as error:
        logger.error("no decoy after %s: %s", context.view.sha256, error)
        return
    if decoy is None:
        return
    values = {"decoys": 1, "missed_decoys": int(decoy.missed), f"decoys_{decoy.check}": 1}
    values["failed_decoys"] = int(decoy.found_by == FAILING)  # found by no finding
    tools.log(context.view.step, {f"validator/{key}": n for key, n in values.items()})
    if decoy.missed:
        raise RunError(
            f"a decoy of check {decoy.check} passed: this validator finds nothing",
            where=f"validator {tools.signer.address}",
            fix="mend the check or its parameters; believe none of its verdicts until then",
        )


def is_due(seed: bytes, every: int) -> bool:
    """Whether a decoy follows this file: about one in `every`; never for 0."""
    return every > 0 and uniform(seed, "decoy") < 1 / every


def show_decoy(
    checks: Sequence[NamedCheck],
    context: FileContext,
    around: Surroundings,
    seed: bytes,
    dropped: Collection[str] = (),
) -> Decoy | None:
    """Spoil a copy of an accepted file and judge it; None where no check can spoil it.

    A copy counts as spoilt where a rollout differs that would train: what a node sends decides how
    much of its file that is, and mustn't decide whether the validator seems blind.

    Args:
        context: of the accepted file.
        around: the same surroundings.
        seed: of the accepted file's draws.
        dropped: the file's groups that may not train.

    Raises:
        StoreError, HostError: the store or a host of ours fails.
    """
    makers = [each for each in checks if getattr(each.check, "decoy", None) is not None]
    submission = context.submission
    if not makers or submission is None:
        return None
    first = below(seed, "decoy maker", len(makers))
    for named in [*makers[first:], *makers[:first]]:
        rows = _spoilt(named, context, submission.rows, dropped)
        if rows is None:
            continue
        changed = _changed(submission.rows, rows) - set(dropped)
        if not changed:
            continue
        judged = _judge(checks, context.view, submission, rows, around, seed)
        if judged is None:
            return Decoy(named.name, "schema")  # it can't even be written
        return Decoy(named.name, _found_by(judged, rows, changed))
    return None


def _spoilt(
    named: NamedCheck,
    context: FileContext,
    before: Sequence[RolloutRow],
    dropped: Collection[str],
) -> Sequence[RolloutRow] | None:
    """A check's decoy; None where it has none for this file, or fails to make one.

    To the check the rows of dropped groups have no score: it may count on none of them.
    """
    nothing: dict[str, Any] = {"score": None, "reward": None, "reward_parts": {}}
    shown = [
        replace(row, score_status="error", **nothing) if row.group_id in dropped else row
        for row in before
    ]
    make = cast("Callable[..., Sequence[Any] | None]", named.check.decoy)  # type: ignore[attr-defined]
    try:
        rows = make(replace(context.view, rows=tuple(shown)), context)
    except (StoreError, HostError):
        raise
    except Exception:
        logger.exception("check %s makes no decoy of %s", named.name, context.view.sha256)
        return None
    if rows is None or len(rows) != len(before):
        return rows
    return [old if old.group_id in dropped else new for old, new in zip(before, rows, strict=True)]


def _changed(before: Sequence[RolloutRow], after: Sequence[RolloutRow]) -> set[str]:
    """Groups in which a rollout differs that has a reward and a token to train."""
    if len(before) != len(after):
        return {row.group_id for row in before}
    return {
        new.group_id
        for old, new in zip(before, after, strict=True)
        if new != old and new.reward is not None and any(new.completion_mask)
    }


def _found_by(judgement: Judgement, rows: Sequence[RolloutRow], changed: set[str]) -> str:
    """The check that kept what was spoilt from training; "" where nothing did."""
    if judgement.grave is not None:
        return judgement.grave[0]
    if judgement.failure is not None:
        return FAILING
    for name, finding in judgement.found:
        if finding.severity == "drop" and finding.row is not None:
            changed.discard(rows[finding.row].group_id)
            if not changed:
                return name
    return ""


def _judge(
    checks: Sequence[NamedCheck],
    view: SubmissionView,
    submission: Submission,
    rows: Sequence[RolloutRow],
    around: Surroundings,
    seed: bytes,
) -> Judgement | None:
    try:
        data = write_submission(rows, submission.meta)
    except FormatError:
        return None
    sha256 = hashlib.sha256(data).hexdigest()
    node = around.node.address or ""
    said = Statement(view.run_id, view.step, view.node, view.n, sha256, len(data), node)
    spoilt = replace(view, sha256=sha256, size=len(data), rows=(), metadata=None)
    context = FileContext(
        replace(around, statement=lambda: said, seen=lambda _: None),
        spoilt,
        data,
        seed=seed,
        full=True,
        spot_groups=0,
    )
    return ask(checks, context)
