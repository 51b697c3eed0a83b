"""Check `assignment`: tasks, seeds, length targets, prompts and sampling are those assigned.

Everything here is a pure function of what no node can choose, so that another task or seed is a
choice: it slashes. A prompt or length target may differ by a plugin's version: that rejects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prime_core.api import (
    AssignedGroup,
    CheckContext,
    Context,
    Finding,
    HostError,
    NoParams,
    RolloutView,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)
from prime_sanity_checks.findings import few


class Assignment:
    """Compares every row with the recomputed assignment."""

    stage: Stage = "row"

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """Findings, the first of each kind first."""
        found = few(self._of_dispatch(submission, context))
        if found:
            return found
        rows = list(self._of_rows(submission, context))
        # excuses first in the file mustn't hide what follows them
        grave = few(each for each in rows if each.severity != "drop")
        return [*grave, *(each for each in rows if each.severity == "drop")]

    def _of_dispatch(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        run = context.run
        if submission.groups > run.max_groups or submission.group_size != run.group_size:
            yield Finding(
                "reject", f"{submission.groups} groups of {submission.group_size} aren't allowed"
            )
        elif len(submission.rows) != submission.groups * submission.group_size:
            yield Finding("reject", f"{len(submission.rows)} rows aren't what was announced")
        elif any(row.policy_version != submission.policy_version for row in submission.rows):
            # somebody else may have announced it: not the node's choice of seeds
            yield Finding("reject", "its rows aren't of the announced policy version")

    def _of_rows(self, submission: SubmissionView, context: CheckContext) -> Iterator[Finding]:
        run, size = context.run, submission.group_size
        temperature = float(np.float32(run.temperature))
        for k, assigned in enumerate(context.assignment()):
            for sample in range(size):
                index = k * size + sample
                row = submission.rows[index]
                yield from self._of_row(index, row, assigned, sample)
                if row.temperature != temperature:
                    yield Finding("reject", f"has temperature {row.temperature:g}", index)
                if row.max_tokens != run.max_tokens:
                    yield Finding("reject", f"has max_tokens {row.max_tokens}", index)

    def _of_row(
        self, index: int, row: RolloutView, assigned: AssignedGroup, sample: int
    ) -> Iterator[Finding]:
        if row.group_id != assigned.group_id or row.sample != sample:
            yield Finding("reject", f"isn't sample {sample} of group {assigned.group_id}", index)
        if row.environment != assigned.environment or row.task_id != assigned.task_id:
            yield Finding("slash", f"task {row.task_id[:80]} isn't the assigned one", index)
        if row.sampling_seed != assigned.seeds[sample]:
            yield Finding("slash", "the sampling seed isn't the assigned one", index)
        if row.length_budget != assigned.length_budget:
            yield Finding(
                "reject", f"length target {row.length_budget}, not {assigned.length_budget}", index
            )
        if assigned.failure:
            if row.score_status != "error" and assigned.host_failed:
                raise HostError(  # ours: nothing can be said of the file until it renders again
                    assigned.failure,
                    kind="exception",
                    where=f"group {assigned.group_id}",
                    fix="look at the environment's log",
                )
            if row.score_status != "error":
                reason = f"has a prompt that can't be: {assigned.failure}"
                yield Finding("reject", reason[:250], index)
        elif row.score_status == "error" and not row.prompt_tokens:
            yield Finding("drop", "has no prompt, though the task has one", index)
        elif tuple(row.prompt_tokens) != assigned.prompt_tokens:
            yield Finding("reject", "the prompt isn't the rendered one", index)
        elif not row.length:
            # an engine says at least one token; leaving one out would choose the group's baseline
            yield Finding("reject", "has a prompt and no completion", index)

    def decoy(
        self, submission: SubmissionView, context: CheckContext
    ) -> Sequence[RolloutView] | None:
        """Rows whose first samples changed places in each group: each has the seed of another."""
        rows: list[Any] = list(submission.rows)
        for at in range(0, len(rows) - 1, submission.group_size):
            first, second = rows[at], rows[at + 1]
            rows[at] = replace(first, sampling_seed=second.sampling_seed)
            rows[at + 1] = replace(second, sampling_seed=first.sampling_seed)
        return rows


def make_assignment(params: NoParams, context: Context) -> Assignment:
    """Factory of the spec."""
    return Assignment()


SPEC = SanityCheckSpec(
    name="assignment",
    params=NoParams,
    factory=make_assignment,
    summary="Tasks, seeds, length targets, prompts and sampling as assigned",
    cost="one rendering of the prompts",
    catches="cherry-picked tasks, seeds, targets; edited prompts; incomplete groups",
)
