"""Rollout format `prime-core/rollout/1`: its columns, one row in Python, and what every row obeys.

The writer and the reader of submissions both call `check_rows`, so that nothing is written that a
reader would refuse. docs/reference/rollout-format.md describes the same for other languages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from prime_core.api.errors import FormatError
from prime_core.api.types import SCORE_STATUSES, VALUELESS_STATUSES
from prime_core.store.records import is_node

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_ID = "prime-core/rollout/1"
METADATA_KEYS = ("schema", "run_id", "lock_digest", "engine_fingerprint")
FINISH_REASONS = ("stop", "length", "turns")
DIGEST_BYTES = 32
MAX_TEXT = 4096  # characters of a string column's value
MAX_PARTS = 64  # named parts of one reward
MAX_PART_NAME = 256  # bytes of a part's name
_I64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """One rollout. T is the length of the completion, environment tokens included.

    Attributes:
        group_id, sample: `<step>-<node>-<submission>-<k>` and 0..G-1.
        max_tokens: limit on model tokens, over all turns.
        prompt_tokens: [P]; equal in the whole group.
        completion_tokens: [T]; N of them are the model's, EOS included.
        completion_mask: [T]; False where the environment spoke.
        completion_logprobs: [T] float32 under the sampling distribution; 0 where it spoke.
        length_budget: target in tokens, equal in the whole group, or None.
        score, reward: None exactly where `score_status` is abstained or error.
        proofs: commitments, concatenated; empty where the engine proves nothing.
        policy_digest: 32 bytes, the seal of the version whose bytes the engine read.
        turn_ends: token offsets (exclusive) where the model's turns end.
    """

    environment: str
    task_id: str
    group_id: str
    sample: int
    step: int
    policy_version: int
    node: str
    submission: int
    max_tokens: int
    prompt_tokens: list[int]
    completion_tokens: list[int]
    completion_mask: list[bool]
    completion_logprobs: list[float]
    finish_reason: str
    length_budget: int | None
    sampling_seed: int
    temperature: float
    score: float | None
    score_status: str
    reward: float | None
    reward_parts: dict[str, float]
    proofs: bytes
    policy_digest: bytes
    turn_ends: list[int]

    @property
    def length(self) -> int:
        """Model tokens, EOS included."""
        return sum(self.completion_mask)


COLUMNS = tuple(RolloutRow.__slots__)


@dataclass(frozen=True, slots=True)
class SubmissionMeta:
    """The file metadata beside the schema id: run id, lock digest (hex), engine fingerprint."""

    run_id: str
    lock_digest: str
    engine_fingerprint: str


def arrow_schema() -> pa.Schema:
    """The Arrow schema: 24 columns in order, nullable where the format says so and nowhere else."""
    import pyarrow as pa

    def items(kind: pa.DataType) -> pa.DataType:
        return pa.list_(pa.field("element", kind, nullable=False))

    parts = pa.map_(pa.string(), pa.field("value", pa.float32(), nullable=False))
    kinds: dict[str, pa.DataType] = {
        "environment": pa.string(),
        "task_id": pa.string(),
        "group_id": pa.string(),
        "sample": pa.int32(),
        "step": pa.int32(),
        "policy_version": pa.int32(),
        "node": pa.string(),
        "submission": pa.int32(),
        "max_tokens": pa.int32(),
        "prompt_tokens": items(pa.int32()),
        "completion_tokens": items(pa.int32()),
        "completion_mask": items(pa.bool_()),
        "completion_logprobs": items(pa.float32()),
        "finish_reason": pa.string(),
        "length_budget": pa.int32(),
        "sampling_seed": pa.int64(),
        "temperature": pa.float32(),
        "score": pa.float32(),
        "score_status": pa.string(),
        "reward": pa.float32(),
        "reward_parts": parts,
        "proofs": pa.binary(),
        "policy_digest": pa.binary(),
        "turn_ends": items(pa.int32()),
    }
    nullable = ("length_budget", "score", "reward")
    return pa.schema([pa.field(name, kinds[name], nullable=name in nullable) for name in COLUMNS])


def split_group_id(row: RolloutRow) -> int | None:
    """The k of a row's group id, or None where the id isn't `<step>-<node>-<submission>-<k>`."""
    prefix, _, digits = row.group_id.rpartition("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 6):
        return None
    k = int(digits)
    expected = f"{row.step}-{row.node}-{row.submission}"
    return k if prefix == expected and str(k) == digits else None


def check_rows(rows: Sequence[RolloutRow]) -> None:
    """Hold the invariants of a file; every number is as float32 and int32 hold it.

    Raises:
        FormatError: names the first row that breaks one, the column and the reason.
    """
    if not rows:
        raise FormatError("a submission has no rows", fix="a submission is at least one group")
    for index, row in enumerate(rows):
        for column, reason in _row_problems(row):
            _refuse(index, column, reason)
    _check_file(rows)
    _check_groups(rows)


def _refuse(index: int, column: str, reason: str) -> NoReturn:
    raise FormatError(
        reason, where=f"row {index}, {column}", fix="refuse the file; its writer is wrong"
    )


def _row_problems(row: RolloutRow) -> Iterator[tuple[str, str]]:
    for column in ("environment", "task_id"):
        if not 0 < len(getattr(row, column)) <= MAX_TEXT:
            yield column, f"is empty or above {MAX_TEXT} characters"
    if not is_node(row.node):
        yield "node", "isn't [a-z0-9-]{1,64}"
    for column in ("sample", "step", "policy_version", "submission"):
        if getattr(row, column) < 0:
            yield column, f"is {getattr(row, column)}, below 0"
    if split_group_id(row) is None:
        yield "group_id", "isn't <step>-<node>-<submission>-<k> of its row"
    if row.policy_version > row.step:
        yield "policy_version", f"{row.policy_version} is newer than step {row.step}"
    if row.max_tokens < 1:
        yield "max_tokens", f"is {row.max_tokens}, below 1"
    if row.length_budget is not None and row.length_budget < 1:
        yield "length_budget", f"is {row.length_budget}, below 1"
    if not 0 <= row.sampling_seed <= _I64_MAX:
        yield "sampling_seed", "isn't 63 bits"
    if len(row.policy_digest) != DIGEST_BYTES:
        yield "policy_digest", f"has {len(row.policy_digest)} bytes, not {DIGEST_BYTES}"
    if row.finish_reason not in FINISH_REASONS:
        yield "finish_reason", f"isn't one of {', '.join(FINISH_REASONS)}"
    if not (math.isfinite(row.temperature) and row.temperature >= 0):
        yield "temperature", "isn't a finite number >= 0"
    yield from _score_problems(row)
    yield from _token_problems(row)


def _score_problems(row: RolloutRow) -> Iterator[tuple[str, str]]:
    if row.score_status not in SCORE_STATUSES:
        yield "score_status", f"isn't one of {', '.join(SCORE_STATUSES)}"
    valueless = row.score_status in VALUELESS_STATUSES
    for column, value in (("score", row.score), ("reward", row.reward)):
        if (value is None) != valueless:
            yield column, f"is {'null' if value is None else 'set'} with status {row.score_status}"
        if value is not None and not math.isfinite(value):
            yield column, "isn't finite"
    if valueless and row.reward_parts:
        yield "reward_parts", "has parts of a reward that is null"
    if len(row.reward_parts) > MAX_PARTS:
        yield "reward_parts", f"has more than {MAX_PARTS} parts"
    if any(len(name.encode()) > MAX_PART_NAME for name in row.reward_parts):
        yield "reward_parts", f"has a name above {MAX_PART_NAME} bytes"
    if not all(math.isfinite(value) for value in row.reward_parts.values()):
        yield "reward_parts", "has a part that isn't finite"


def _token_problems(row: RolloutRow) -> Iterator[tuple[str, str]]:
    """Lengths, ids, probabilities and turns.

    A rollout of status error may be empty: its prompt could not be made, or nothing came back.
    """
    length = len(row.completion_tokens)
    for column in ("completion_mask", "completion_logprobs"):
        if len(getattr(row, column)) != length:
            yield column, f"has {len(getattr(row, column))} entries for {length} tokens"
            return
    if row.score_status != "error" and not (length and row.prompt_tokens):
        yield "completion_tokens", "prompt or completion is empty, and the status isn't error"
    for column in ("prompt_tokens", "completion_tokens"):
        ids = getattr(row, column)
        if ids and min(ids) < 0:
            yield column, "has a token id below 0"
    mask = np.asarray(row.completion_mask, dtype=bool)
    logprobs = np.asarray(row.completion_logprobs, dtype=np.float64)
    if not np.isfinite(logprobs).all() or (logprobs > 0).any():
        yield "completion_logprobs", "has an entry above 0 or not finite"
    if logprobs[~mask].any():
        yield "completion_logprobs", "isn't 0 where the environment spoke"
    ends = np.flatnonzero(mask & ~np.append(mask[1:], False)) + 1
    if row.turn_ends != ends.tolist():
        yield "turn_ends", "aren't the ends of the model's turns in completion_mask"
    if length and not mask[0]:
        yield "completion_mask", "starts with the environment"
    if int(mask.sum()) > row.max_tokens:
        yield "max_tokens", f"{int(mask.sum())} model tokens are above the limit {row.max_tokens}"


def _check_file(rows: Sequence[RolloutRow]) -> None:
    """One node, step, submission and policy in a file."""
    first = rows[0]
    columns = ("step", "node", "submission", "policy_version", "policy_digest")
    for index, row in enumerate(rows):
        for column in columns:
            if getattr(row, column) != getattr(first, column):
                _refuse(index, column, "differs from the first row's")


def _check_groups(rows: Sequence[RolloutRow]) -> None:
    """Whole groups of one size, ascending k, samples 0..G-1 in order, one task each."""
    size, last_k, index = 0, -1, 0
    for group_id, members in groupby(rows, key=lambda row: row.group_id):
        group = list(members)
        k = split_group_id(group[0])
        assert k is not None
        if k <= last_k:
            _refuse(index, "group_id", f"{group_id} is out of order or in two pieces")
        size = size or len(group)
        if [row.sample for row in group] != list(range(size)):
            _refuse(index, "sample", f"group {group_id} isn't samples 0..{size - 1} in order")
        for offset, row in enumerate(group):
            for column in ("environment", "task_id", "prompt_tokens", "length_budget"):
                if getattr(row, column) != getattr(group[0], column):
                    _refuse(index + offset, column, f"differs within group {group_id}")
        last_k, index = k, index + len(group)
