"""A toy file in a context of its own, and a check that says what it is told."""

from __future__ import annotations

from collections.abc import Sequence

from prime_core.api import (
    Finding,
    SubmissionView,
)
from prime_core.store.counter import StepRules
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import read_submission, write_submission
from prime_core.testing.toy_submission import toy_submission
from prime_core.validation.context import FileContext, Surroundings

SEED = bytes(range(32))
AUDIT = "0x" + "0" * 130
RULES = StepRules(10, 4, 2, 2)


class Says:
    """A check that says what it is told, or raises it."""

    def __init__(self, *found: Finding, stage: str = "row", error: Exception | None = None) -> None:
        self.stage, self._found, self._error = stage, found, error
        self.asked = 0

    def check(self, submission: SubmissionView, context: object) -> Sequence[Finding]:
        self.asked += 1
        if self._error is not None:
            raise self._error
        return self._found


class Direct:
    """A reader that reads here."""

    def read(self, data: bytes, *, time_limit_s: float, memory_mb: int):
        return read_submission(data)


def opened(
    *, full: bool = True, spot_groups: int = 1, groups: int = 4, data: bytes | None = None
) -> tuple[FileContext, Surroundings]:
    view, toy = toy_submission(groups=groups)
    rows = [row for row in view.rows if isinstance(row, RolloutRow)]
    data = (
        write_submission(rows, SubmissionMeta("toy-run", "l" * 64, "toy")) if data is None else data
    )
    around = Surroundings(
        run=toy.run,
        node=toy.node,
        rules=RULES,
        newest_version=3,
        recomputer=None,  # type: ignore[arg-type]  # nothing here computes
        reader=Direct(),  # type: ignore[arg-type]
        statement=lambda: None,
        seen=lambda sha256: None,
    )
    bare = SubmissionView(
        **{
            name: getattr(view, name)
            for name in SubmissionView.__slots__
            if name not in ("rows", "metadata")
        }
    )
    context = FileContext(around, bare, data, seed=SEED, full=full, spot_groups=spot_groups)
    return context, around
