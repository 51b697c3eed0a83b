"""Case files for verifiers: rows with an expected verdict, judged in a host, counted by kind.

Called by `prime-core verify` and the benchmarks of verifiers. Invariant: every row of a file gets
one verdict, in order; a row that can't be read as a case gets the status error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import DatasetError, PluginError
from prime_core.api.types import Score

if TYPE_CHECKING:
    from prime_core.hosting.verifier_pool import Case, Opinion, VerifierPool

EXPECTED = ("expected", "expected_reward")  # either name of the column


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One row of a case file.

    Attributes:
        id: its `id`, or the line.
        kind: its `kind`, "" where it has none.
        expected: the value that a right verdict has; None where the row doesn't say.
        fields: the whole row, for the verifier.
    """

    id: str
    kind: str
    expected: float | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """What the verifier says of a row.

    Attributes:
        cpu_seconds: of the verdict, measured in the host; None where there was none.
        opinion: of the second grader; None where none was asked.
    """

    row: CaseRow
    score: Score
    cpu_seconds: float | None
    opinion: Opinion | None = None

    @property
    def as_expected(self) -> bool | None:
        """Whether the value is the expected one; None where the row doesn't say."""
        return None if self.row.expected is None else self.score.value == self.row.expected

    @property
    def disagrees(self) -> bool:
        """Whether both graders have a value, and not the same."""
        theirs = None if self.opinion is None else self.opinion.value
        return None not in (theirs, self.score.value) and theirs != self.score.value


@dataclass(frozen=True, slots=True)
class KindCounts:
    """The verdicts on one kind of rows.

    Attributes:
        count: rows.
        right: verdicts as expected.
        accepted_wrong: values above the expected one.
        rejected_right: values below it.
        no_value: abstained or error, whatever was expected.
        max_cpu_s: the longest verdict's CPU seconds.
    """

    kind: str
    count: int
    right: int
    accepted_wrong: int
    rejected_right: int
    no_value: int
    max_cpu_s: float


def read_case_rows(path: Path) -> list[CaseRow]:
    """The rows of a JSONL file; blank lines are skipped.

    Raises:
        DatasetError: the file can't be read, or a line isn't a JSON object with a usable
            `expected`.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # U+2028 may stand in a string
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"the cases can't be read: {error}", where=str(path), fix="give a JSONL file"
        ) from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(case_row(json.loads(line), f"line {number}"))
            except ValueError as error:
                raise DatasetError(
                    f"this isn't a case: {error}",
                    where=f"{path}:{number}",
                    fix="write one JSON object a line; expected is a boolean or a number",
                ) from error
    return rows


def case_row(fields: Any, place: str) -> CaseRow:
    """One row from what JSON holds.

    Raises:
        ValueError: not an object, or `expected` is neither boolean nor number.
    """
    if not isinstance(fields, dict):
        raise ValueError(f"a {type(fields).__name__}, not an object")
    expected = next((fields[name] for name in EXPECTED if fields.get(name) is not None), None)
    if expected is not None and not isinstance(expected, bool | int | float):
        raise ValueError(f"expected is {expected!r}")
    return CaseRow(
        str(fields.get("id", place)),
        str(fields.get("kind", "")),
        None if expected is None else float(expected),
        fields,
    )


async def verify_cases(
    pool: VerifierPool,
    rows: Sequence[CaseRow],
    cases: Sequence[Case | str],
    *,
    second_opinion: bool = False,
) -> list[CaseVerdict]:
    """One verdict a row, in order.

    Args:
        pool: the verifier.
        rows: what is known of each case.
        cases: the cases themselves as `pool.cases` returns them, with reasons for unusable ones.
        second_opinion: ask the verifier's second grader too.

    Raises:
        PluginError: a second opinion is wanted and the verifier offers none.
        HostError: no host can be started any more.
    """
    if second_opinion and "second_opinion" not in pool.description.members:
        raise PluginError(
            "it offers no second opinion",
            plugin=f"verifier.{pool.description.name}",
            distribution=pool.description.distribution,
            phase="working",
            fix="leave --second-opinion out",
        )
    usable = [case for case in cases if not isinstance(case, str)]
    timed = iter(await pool.verify(usable))
    opinions = iter(await pool.second_opinions(usable) if second_opinion else [])
    verdicts = []
    for row, case in zip(rows, cases, strict=True):
        if isinstance(case, str):
            unread = Score(None, "error", evidence={"kind": "case", "detail": case})
            verdicts.append(CaseVerdict(row, unread, None))
        else:
            found = next(timed)
            verdicts.append(CaseVerdict(row, found.score, found.cpu_seconds, next(opinions, None)))
    return verdicts


def by_kind(verdicts: Sequence[CaseVerdict]) -> list[KindCounts]:
    """Counts of each kind, in order of first appearance; the last line, `all`, counts all."""
    kinds: dict[str, list[CaseVerdict]] = {}
    for verdict in verdicts:
        kinds.setdefault(verdict.row.kind, []).append(verdict)
    lines = [_counts(kind, found) for kind, found in kinds.items() if len(kinds) > 1 or kind]
    return [*lines, _counts("all", verdicts)]


def _counts(kind: str, verdicts: Sequence[CaseVerdict]) -> KindCounts:
    judged = [
        (verdict.score.value, verdict.row.expected)
        for verdict in verdicts
        if verdict.score.value is not None and verdict.row.expected is not None
    ]
    return KindCounts(
        kind=kind,
        count=len(verdicts),
        right=sum(value == expected for value, expected in judged),
        accepted_wrong=sum(value > expected for value, expected in judged),
        rejected_right=sum(value < expected for value, expected in judged),
        no_value=sum(verdict.score.value is None for verdict in verdicts),
        max_cpu_s=max((verdict.cpu_seconds or 0.0 for verdict in verdicts), default=0.0),
    )
