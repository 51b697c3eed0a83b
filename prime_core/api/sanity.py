"""The values and protocols of sanity checks: submissions in, findings out.

A check plugin implements `SanityCheck`; the validator asks each selected one about each submission
and gives it a `CheckContext`, through which everything costly is computed once and shared. Rows
come from machines nobody trusts: a check believes nothing in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from prime_core.api.check_facts import (
    AssignedGroup,
    NodeFacts,
    ProofReport,
    Rescored,
    RowPrefill,
    RunFacts,
)
from prime_core.api.submissions import Statement, SubmissionView

if TYPE_CHECKING:
    from prime_core.api.protocols import Rng

Severity: TypeAlias = Literal["slash", "reject", "drop", "warn"]
Stage: TypeAlias = Literal["file", "row", "model"]

SEVERITIES: tuple[Severity, ...] = ("warn", "drop", "reject", "slash")  # rising
STAGES: tuple[Stage, ...] = ("file", "row", "model")  # rising cost


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check holds against a submission.

    Attributes:
        severity: slash: only what an honest node can't produce; reject: the whole file; drop: one
            group, nobody's fault (`row` says which group); warn: noted, changes nothing.
        reason: one short sentence; it becomes public with the verdict.
        row: index of the row in the file; None where the whole file is meant.
        chunk: index of the row's proof chunk, where one is meant.
        blameless: it surely isn't the node's doing, so that its record goes on as if nothing was.
    """

    severity: Severity
    reason: str
    row: int | None = None
    chunk: int | None = None
    blameless: bool = False

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity {self.severity!r} is not one of {SEVERITIES}")
        if self.severity == "drop" and self.row is None:
            raise ValueError("a drop names a row of the group that is dropped")


class CheckContext(Protocol):
    """What a check may ask about the submission that it judges; every answer is computed once."""

    @property
    def run(self) -> RunFacts:
        """What the run demands."""
        ...

    @property
    def node(self) -> NodeFacts:
        """What the run knows of the node that the submission names."""
        ...

    @property
    def full(self) -> bool:
        """Whether this file is checked in full; else costly checks look at `rows` alone."""
        ...

    @property
    def rows(self) -> Sequence[int]:
        """Indices of the rows that costly checks look at: whole groups."""
        ...

    @property
    def rng(self) -> Rng:
        """Draws of this check for this file: nobody could know them when the file was made."""
        ...

    @property
    def newest_version(self) -> int:
        """The newest sealed policy version."""
        ...

    def allows(self, step: int, version: int) -> bool:
        """Whether new work for a step may come from a version."""
        ...

    def seal(self, version: int) -> bytes:
        """The seal (32 bytes) of a sealed version.

        Raises:
            PrimeError: it isn't sealed.
        """
        ...

    def read(self, *, time_limit_s: float, memory_mb: int) -> None:
        """Decode the file in a process that is killed above these limits.

        Raises:
            FormatError: the bytes break the format, or a limit; the rows can't be had.
        """
        ...

    def statement(self) -> Statement | None:
        """The signed statement beside the file; None where there is none in time.

        Raises:
            PrimeError: it can't be read, or its signature is wrong.
        """
        ...

    def seen(self, sha256: str) -> str | None:
        """Another submission of the run that had these very bytes, or None."""
        ...

    def assignment(self) -> Sequence[AssignedGroup]:
        """What this node had to generate, recomputed: tasks, seeds, length targets, prompts."""
        ...

    def prefill(self, rows: Sequence[int]) -> Sequence[RowPrefill]:
        """The claimed policy's word on these rows, in order."""
        ...

    def verify_proofs(
        self,
        rows: Sequence[int],
        *,
        exponent_mismatches: int,
        mantissa_mean: float,
        mantissa_median: float,
    ) -> Sequence[ProofReport]:
        """These rows' commitments against the claimed policy's hidden states."""
        ...

    def rescore(self, rows: Sequence[int]) -> Sequence[Rescored]:
        """Scores and rewards of these rows by the run's own hosts; whole groups only."""
        ...


@runtime_checkable
class SanityCheck(Protocol):
    """Judges submitted rollout files. It runs in the validator's process, in one thread.

    Optional member: `decoy(submission, context) -> Sequence[RolloutView] | None` makes, of an
    accepted submission, rows that this check must find something in (copies with changes, as
    `dataclasses.replace` makes them), or None where it can't; the validator shows itself such
    files to prove that it works. A check whose power isn't 1 has none.
    """

    @property
    def stage(self) -> Stage:
        """file: needs no row; row: looks at rows; model: needs a forward pass of the policy."""
        ...

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Everything that it holds against a submission, at most a few findings.

        An exception of `PrimeError` or any other means that the file couldn't be judged, which
        costs the file its turn and accuses nobody.
        """
        ...
