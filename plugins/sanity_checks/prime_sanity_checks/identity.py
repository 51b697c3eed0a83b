"""Check `identity`: who submitted, by a signed statement; whether now, and whether anew.

Nothing is decoded for it. A file whose step has closed never gets here: it is late, which is no
rejection; and what a store that is away leaves open is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    FormatError,
    IntegrityError,
    NoParams,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few


class Identity:
    """Compares the signed statement with the file, and the dispatch with what the run allows."""

    stage: Stage = "file"

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings; nobody is slashed here, as anybody may write under anybody's name."""
        return few(self._problems(submission, context))

    def _problems(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        node, run = context.node, context.run
        if node.address is None:
            yield Finding("reject", f"{submission.node} isn't one of the run's nodes")
            return
        try:
            said = context.statement()
        except (FormatError, IntegrityError) as error:
            yield Finding("reject", f"the signed statement: {error.what}"[:250])
            return
        if said is None:
            yield Finding("reject", "there is no signed statement beside it")
            return
        if said.signer != node.address:
            yield Finding("reject", f"signed by {said.signer}, the node is {node.address}")
        named = (said.run_id, said.step, said.node, said.n)
        if named != (run.run_id, submission.step, submission.node, submission.n):
            yield Finding("reject", "the signed statement names another submission")
        if (said.sha256, said.size) != (submission.sha256, submission.size):
            yield Finding("reject", "the signed statement is of other bytes")
        if submission.run_id != run.run_id:
            yield _of_dispatch("the dispatch names another run")
        if submission.node_class != node.node_class:
            yield _of_dispatch(f"the dispatch names a class other than {node.node_class}")
        version = submission.policy_version
        if version > context.newest_version or not context.allows(submission.step, version):
            yield _of_dispatch(
                f"step {submission.step} doesn't allow version {version} (async lag)"
            )
        other = context.seen(submission.sha256)
        if other is not None:
            yield Finding("reject", f"submission {other} had these very bytes")


def _of_dispatch(reason: str) -> Finding:
    """Dispatches carry no signature: somebody else may have written this one."""
    return Finding("reject", reason, blameless=True)


def make_identity(params: NoParams, context: Context) -> Identity:
    """Factory of the spec."""
    return Identity()


SPEC = SanityCheckSpec(
    name="identity",
    params=NoParams,
    factory=make_identity,
    summary="Signed statement, known node, allowed version, bytes not seen before",
    cost="one signature",
    catches="files in another's name, stale versions, copied and resubmitted files",
)
