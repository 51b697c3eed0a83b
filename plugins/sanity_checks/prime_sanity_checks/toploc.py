"""Check `toploc`: the commitments are of the claimed policy's hidden states over these tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    Params,
    RolloutView,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few, spoken


class ToplocParams(Params):
    """Parameters of the check `toploc`; `prime-core toploc calibrate` measures them."""

    exponent_mismatches: int = Field(
        38, ge=0, le=128, description="exponents of a chunk that may differ, of 128"
    )
    mantissa_mean: float = Field(10.0, ge=0, description="mean difference of mantissas")
    mantissa_median: float = Field(8.0, ge=0, description="median difference of mantissas")


class Toploc:
    """One prefill of the submitted tokens, and the comparison of every chunk."""

    stage: Stage = "model"

    def __init__(self, params: ToplocParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings of single chunks."""
        silent = (
            Finding("reject", "has proofs of tokens that aren't there", index)
            for index, row in enumerate(submission.rows)
            if row.proofs and not row.length
        )
        return few(silent) or few(self._problems(submission, context))

    def _problems(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        rows = spoken(submission, context)
        reports = context.verify_proofs(rows, **self._params.model_dump())
        for index, report in zip(rows, reports, strict=True):
            if report.error:
                yield Finding("reject", f"its proofs: {report.error}"[:250], index)
            for chunk in report.chunks:
                if not chunk.accepted:
                    yield Finding(
                        "reject",
                        f"{chunk.exponent_mismatches} of 128 exponents differ, mantissas by "
                        f"{chunk.mantissa_mean:.3g} on average: another model or text",
                        index,
                        chunk.chunk,
                    )

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows whose commitments have other polynomials."""
        rows: list[Any] = list(submission.rows)
        return [
            replace(row, proofs=row.proofs[:2] + bytes(len(row.proofs) - 2)) if row.proofs else row
            for row in rows
        ]


def make_toploc(params: ToplocParams, context: Context) -> Toploc:
    """Factory of the spec."""
    return Toploc(params)


SPEC = SanityCheckSpec(
    name="toploc",
    params=ToplocParams,
    factory=make_toploc,
    summary="Commitments against the claimed policy's hidden states",
    cost="shares one forward pass",
    catches="smaller, quantised or stale models; forged proofs",
)
