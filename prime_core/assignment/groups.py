"""Who must generate what: environment, task and sampling seeds of every group of a submission.

The worker calls `assign` before it generates, the validator to check what it claims. The answer
depends on the arguments alone, and each purpose of each group has words of its own.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from prime_core.api.errors import FormatError
from prime_core.assignment.philox import SeededRng

# The index of a purpose is a counter word: append only.
PURPOSES = ("environment", "task", "length_budget", "sampling")
# The heaviest environment's integer weight; the others are scaled to it.
WEIGHT_ONE = 2**32

_NODE = re.compile(r"[a-z0-9-]{1,64}")
_GROUP_ID = re.compile(r"(0|[1-9]\d{0,17})-([a-z0-9-]{1,64})-(0|[1-9]\d{0,17})-(0|[1-9]\d{0,17})")


@dataclass(frozen=True, slots=True)
class AssignmentKey:
    """What keys the assignment of one submission.

    Attributes:
        run_id: the run.
        beacon: 32 bytes, `beacon` of the policy version that generates.
        node: the node's name or address, `[a-z0-9-]{1,64}`; FormatError otherwise.
        step: the rollout step that the submission is for.
        submission: the node's count of submissions for that step, from 0.
    """

    run_id: str
    beacon: bytes
    node: str
    step: int
    submission: int

    def __post_init__(self) -> None:
        if not _NODE.fullmatch(self.node):
            raise FormatError(
                f"{self.node!r} is no node name", fix="use 1 to 64 characters of [a-z0-9-]"
            )
        assert len(self.beacon) == 32, len(self.beacon)
        assert 0 <= self.step < 2**63, self.step
        assert 0 <= self.submission < 2**63, self.submission

    def digest(self) -> bytes:
        """SHA-256 over the five fields, each behind its length; 32 bytes."""
        return _digest(
            b"prime-core/assignment/1",
            self.run_id.encode(),
            self.beacon,
            self.node.encode(),
            self.step.to_bytes(8, "little"),
            self.submission.to_bytes(8, "little"),
        )


@dataclass(frozen=True, slots=True)
class EnvironmentShare:
    """An environment's label, weight against the others, and length of its filtered task list."""

    label: str
    weight: float
    task_count: int


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """One group that a node must generate.

    Attributes:
        group_id: `step-node-submission-k`.
        k: the group's place in the submission.
        environment: the label of its environment.
        task: index into that environment's filtered task list.
        seeds: one 63-bit sampling seed per rollout, [G].
    """

    group_id: str
    k: int
    environment: str
    task: int
    seeds: tuple[int, ...]


def beacon(run_id: str, seal: bytes) -> bytes:
    """The 32 bytes that nobody knew before the policy version with this seal was sealed."""
    assert len(seal) == 32, len(seal)
    return _digest(b"prime-core/beacon/1", run_id.encode(), seal)


def group_rng(key: AssignmentKey, group: int, purpose: str) -> SeededRng:
    """The words of one purpose of one group; how many are drawn changes no other purpose's.

    Args:
        key: the submission.
        group: k, the group's place in it.
        purpose: one of `PURPOSES`.
    """
    digest = key.digest()
    words = (int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little"))
    return SeededRng(words, (0, 0, PURPOSES.index(purpose), group))


def assign(
    key: AssignmentKey, shares: Sequence[EnvironmentShare], groups: int, group_size: int
) -> list[GroupAssignment]:
    """The groups of a submission, in order.

    Args:
        key: the submission.
        shares: the run's environments in the config's order.
        groups: how many groups the submission has.
        group_size: rollouts of one group, G.
    """
    weights = scaled_weights([share.weight for share in shares])
    assert all(share.task_count > 0 for share in shares), "an environment without tasks"
    assigned = []
    for k in range(groups):
        share = shares[_weighted(group_rng(key, k, "environment"), weights)]
        sampling = group_rng(key, k, "sampling")
        assigned.append(
            GroupAssignment(
                group_id=group_id(key.step, key.node, key.submission, k),
                k=k,
                environment=share.label,
                task=group_rng(key, k, "task").below(share.task_count),
                seeds=tuple(sampling.word() >> 1 for _ in range(group_size)),
            )
        )
    return assigned


def scaled_weights(weights: Sequence[float]) -> list[int]:
    """Integer weights in [1, 2**32]: floor(w / max(w) * 2**32 + 1/2), at least 1.

    The division is one IEEE float64 operation and the rest is exact, so that every language gets
    the same integers.
    """
    assert weights, "no environments"
    assert all(math.isfinite(weight) and weight > 0 for weight in weights), weights
    heaviest = max(weights)
    return [max(1, math.floor(weight / heaviest * WEIGHT_ONE + 0.5)) for weight in weights]


def group_id(step: int, node: str, submission: int, k: int) -> str:
    """The name of a group: `step-node-submission-k`."""
    return f"{step}-{node}-{submission}-{k}"


def parse_group_id(text: str) -> tuple[int, str, int, int]:
    """The (step, node, submission, k) of a group id; FormatError if it isn't one.

    A node's name may hold `-`, so the step is what stands before the first and submission and k are
    what stands behind the last two; that reads every id in one way only.
    """
    found = _GROUP_ID.fullmatch(text)
    if not found:
        raise FormatError(f"{text[:200]!r} is no group id", fix="expected step-node-submission-k")
    return int(found[1]), found[2], int(found[3]), int(found[4])


def _weighted(rng: SeededRng, weights: Sequence[int]) -> int:
    point = rng.below(sum(weights))
    for index, weight in enumerate(weights):
        if point < weight:
            return index
        point -= weight
    raise AssertionError("a point below the sum lies in one of the weights")


def _digest(*parts: bytes) -> bytes:
    """SHA-256 over the parts, each behind its length as 4 bytes little-endian."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(4, "little"))
        hashed.update(part)
    return hashed.digest()
