"""Check `policy_digest`: the file names the seal of the claimed version, and the run it is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    NoParams,
    RolloutView,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few


class PolicyDigest:
    """Finds mistakes; against liars a digest proves nothing, TOPLOC does."""

    stage: Stage = "row"

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings on dispatch, metadata and rows."""
        return few(self._problems(submission, context))

    def _problems(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        run, metadata = context.run, submission.metadata or {}
        for key in ("run_id", "lock_digest", "engine_fingerprint"):
            if metadata.get(key) != getattr(run, key):
                yield Finding("reject", f"the file's {key} isn't the run's")
        version = submission.policy_version
        if version > context.newest_version:
            yield Finding("reject", f"version {version} isn't sealed")
            return
        seal = context.seal(version)
        if submission.policy_digest != seal.hex():
            yield Finding("reject", f"the dispatch doesn't name the seal of version {version}")
        named = (submission.step, submission.node, submission.n)
        for index, row in enumerate(submission.rows):
            if row.policy_version != version or row.policy_digest != seal:
                yield Finding("reject", f"isn't of version {version} by its seal", index)
            if (row.step, row.node, row.submission) != named:
                yield Finding("reject", "names another submission", index)

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows that name another seal."""
        rows: list[Any] = list(submission.rows)
        return [replace(row, policy_digest=bytes(32)) for row in rows]


def make_policy_digest(params: NoParams, context: Context) -> PolicyDigest:
    """Factory of the spec."""
    return PolicyDigest()


SPEC = SanityCheckSpec(
    name="policy_digest",
    params=NoParams,
    factory=make_policy_digest,
    summary="Seal of the claimed version, run, lock and engine",
    cost="nothing",
    catches="mistakes: another run's or version's rollouts",
)
