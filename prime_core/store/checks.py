"""Whether a submission is what its dispatch announced and stays within the run's bounds.

The intake asks this of every submission under `trust = "none"`; each refusal starts with the
check's short, stable name, which becomes the outcome `rejected(check)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow, split_group_id
from prime_core.store.submission import Submission

# In the order they are asked; the intake adds those that need the assignment or the policies.
CHECKS = (
    "schema",
    "dispatch",
    "run",
    "engine",
    "version",
    "digest",
    "group",
    "environment",
    "task",
    "seeds",
    "bounds",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the run's config and lock allow.

    Attributes:
        run_id, lock_digest, engine_fingerprint: what the file's metadata must say.
        temperature: what every row must say.
        token_limits: token limit of a completion by node class.
        default_token_limit: that of a class not named.
        max_prompt_tokens: limit of a prompt that was generated from.
        max_turns: turns of the model in one rollout.
        vocabulary: token ids are below it; the trainer looks each up in a table of this size.
        node_class: the class that a dispatch must name; a node doesn't choose its own.
        node_classes: by node name, where it differs.
        score_ranges: lowest and highest score by environment label.
    """

    run_id: str
    lock_digest: str
    engine_fingerprint: str
    temperature: float
    token_limits: Mapping[str, int]
    default_token_limit: int
    max_prompt_tokens: int
    max_turns: int
    score_ranges: Mapping[str, tuple[float, float]]
    vocabulary: int
    node_class: str
    node_classes: Mapping[str, str] = field(default_factory=dict)

    def class_of(self, node: str) -> str:
        """The class of a node."""
        return self.node_classes.get(node, self.node_class)

    def token_limit(self, node_class: str) -> int:
        """The token limit of one completion on a node of this class."""
        return self.token_limits.get(node_class, self.default_token_limit)


def check_submission(submission: Submission, dispatch: Dispatch, limits: Limits) -> list[str]:
    """Every reason to refuse a submission, the first of each check; [] where there is none."""
    found: dict[str, str] = {}
    for check, reason in _refusals(submission, dispatch, limits):
        found.setdefault(check, reason)
    return [f"{check}: {found[check]}" for check in CHECKS if check in found]


def check_name(reason: str) -> str:
    """The name of the check that a refusal comes from."""
    return reason.partition(":")[0]


def _refusals(
    submission: Submission, dispatch: Dispatch, limits: Limits
) -> Iterator[tuple[str, str]]:
    meta, first = submission.meta, submission.rows[0]
    if meta.run_id != limits.run_id:
        yield "run", "the file names another run id"
    if meta.lock_digest != limits.lock_digest:
        yield "run", "the file names another lock digest"
    if meta.engine_fingerprint != limits.engine_fingerprint:
        yield "engine", "the file's engine fingerprint isn't the run's"
    named = (first.step, first.node, first.submission)
    if named != dispatch.key:
        yield "dispatch", f"rows name (step, node, submission) {named}, not {dispatch.key}"
    if first.policy_version != dispatch.policy_version:
        yield "version", f"rows name version {first.policy_version}, not {dispatch.policy_version}"
    if first.policy_digest.hex() != dispatch.policy_digest:
        yield "digest", "the rows' policy digest isn't the dispatched version's"
    groups = submission.groups()
    ks = [split_group_id(rows[0]) for rows in groups.values()]
    if ks != list(range(dispatch.groups)):
        yield "group", f"has groups {ks[:16]}, not 0 to {dispatch.groups - 1}"
    for group_id, rows in groups.items():
        if len(rows) != dispatch.group_size:
            yield "group", f"group {group_id} has {len(rows)} rollouts, not {dispatch.group_size}"
    token_limit = limits.token_limit(dispatch.node_class)
    for index, row in enumerate(submission.rows):
        for reason in _out_of_bounds(row, token_limit, limits):
            yield "bounds", f"row {index} {reason}"


def _out_of_bounds(row: RolloutRow, token_limit: int, limits: Limits) -> Iterator[str]:
    if row.max_tokens != token_limit:
        yield f"has max_tokens {row.max_tokens}, not the class's {token_limit}"
    if row.temperature != _f32(limits.temperature):
        yield f"has temperature {row.temperature}, not {limits.temperature}"
    if row.score_status != "error" and len(row.prompt_tokens) > limits.max_prompt_tokens:
        yield f"has {len(row.prompt_tokens)} prompt tokens, above {limits.max_prompt_tokens}"
    largest = max(max(row.prompt_tokens, default=0), max(row.completion_tokens, default=0))
    if largest >= limits.vocabulary:
        yield f"has token id {largest}, beyond the model's {limits.vocabulary}"
    if len(row.turn_ends) > limits.max_turns:
        yield f"has {len(row.turn_ends)} turns, above {limits.max_turns}"
    bounds = limits.score_ranges.get(row.environment)
    if row.score is None or bounds is None:  # an unknown environment is the assignment's to refuse
        return
    low, high = map(_f32, bounds)
    if not low <= row.score <= high:
        yield f"has score {row.score}, outside [{low}, {high}]"
    if row.score_status == "invalid_output" and row.score != low:
        yield f"is invalid_output with score {row.score}, not the lowest, {low}"


def _f32(value: float) -> float:
    return float(np.float32(value))
