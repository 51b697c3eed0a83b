"""Known-bad files that the validator shows itself, to prove that its checks work.

After an accepted file the validator now and then has one of its checks spoil a copy, and judges
that in full. A copy that passes means that nothing which this validator accepted can be believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from prime_core.api import FormatError, Statement, SubmissionView
from prime_core.store.schema import RolloutRow
from prime_core.store.submission import Submission, write_submission
from prime_core.validation.context import FileContext, Surroundings, below, uniform
from prime_core.validation.judging import Judgement, NamedCheck, ask


@dataclass(frozen=True, slots=True)
class Decoy:
    """A spoilt copy: whose decoy it is, and what the checks said of it."""

    check: str
    found_by: str

    @property
    def missed(self) -> bool:
        """Whether it would have been accepted."""
        return not self.found_by


def is_due(seed: bytes, every: int) -> bool:
    """Whether a decoy follows this file: about one in `every`; never for 0."""
    return every > 0 and uniform(seed, "decoy") < 1 / every


def show_decoy(
    checks: Sequence[NamedCheck], context: FileContext, around: Surroundings, seed: bytes
) -> Decoy | None:
    """Spoil a copy of an accepted file and judge it; None where no check can spoil it.

    Args:
        context: of the accepted file.
        around: the same surroundings.
        seed: of the accepted file's draws.
    """
    makers = [each for each in checks if getattr(each.check, "decoy", None) is not None]
    submission = context.submission
    if not makers or submission is None:
        return None
    first = below(seed, "decoy maker", len(makers))
    for named in [*makers[first:], *makers[:first]]:
        make = cast("Callable[..., Sequence[Any] | None]", named.check.decoy)  # type: ignore[attr-defined]
        rows = make(context.view, context)
        if rows is None:
            continue
        judgement = _judge(checks, context.view, submission, rows, around, seed)
        if judgement is None:
            return Decoy(named.name, "schema")  # it can't even be written
        found = judgement.grave[0] if judgement.grave else ""
        return Decoy(named.name, found or ("a failing check" if judgement.failure else ""))
    return None


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
