"""Rollouts to packed micro-batches: first-fit-decreasing, samples isolated, nothing truncated.

`grpo.py` packs the batch of one optimizer step for all ranks at once. Every rank gets the same
number of micro-batches (dummies train nothing), because FSDP's collectives must match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prime_core.trainer.attention import SegmentRun


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sequence to train on: the prompt and everything that follows, token-in/token-out.

    Attributes:
        token_ids: [L] prompt and completion.
        trained: [L] bool, True at model tokens, False at the prompt's and the environment's.
        engine_logprobs: [L] float32, the inference engine's, 0 where `trained` is False.
        advantage: of the whole rollout.
        version: the policy version that generated it.
    """

    token_ids: NDArray[np.int64]
    trained: NDArray[np.bool_]
    engine_logprobs: NDArray[np.float32]
    advantage: float
    version: int

    @property
    def token_count(self) -> int:
        """Trained tokens. The first token of a sequence is given, never chosen."""
        return int(self.trained[1:].sum())


@dataclass(slots=True)
class MicroBatch:
    """Packed inputs [T] and, for each, what is known of the next token of its sequence.

    A sequence of L tokens takes L - 1 places: its last token is only ever a target. `old`,
    `reference` and `own` are filled by passes under other weights before training.

    Attributes:
        weights_T: aggregation weight of the token, global over micro-batches and ranks.
        versions_T: policy version that chose the token, -1 where it isn't trained.
        runs: the isolated samples, as runs of equal lengths.
    """

    inputs_T: Tensor
    positions_T: Tensor
    targets_T: Tensor
    mask_T: Tensor
    weights_T: Tensor
    advantages_T: Tensor
    engine_T: Tensor
    versions_T: Tensor
    runs: tuple[SegmentRun, ...]
    old_T: Tensor = field(default_factory=lambda: torch.empty(0))
    reference_T: Tensor = field(default_factory=lambda: torch.empty(0))
    own_T: Tensor = field(default_factory=lambda: torch.empty(0))


def first_fit_decreasing(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Bins of indices, no bin longer than `capacity` unless it holds one longer item alone.

    Deterministic: ties go by index. Within a bin lengths decrease, so equal ones are neighbours.
    """
    bins: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        length = lengths[index]
        place = next((b for b, free in enumerate(room) if free >= length), None)
        if place is None:
            bins.append([])
            room.append(capacity)
            place = len(bins) - 1
        bins[place].append(index)
        room[place] -= length
    return bins


def deal_to_ranks(bins: Sequence[list[int]], costs: Sequence[int], ranks: int) -> list[list[int]]:
    """Bin indices per rank, [ranks][ceil(bins / ranks)] and fewer: heaviest bin to lightest rank.

    No rank gets more than ceil(bins / ranks), so that dummies are as few as can be.
    """
    most = -(-len(bins) // ranks)
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    load = [0] * ranks
    for index in sorted(range(len(bins)), key=lambda b: (-costs[b], b)):
        open_ranks = [rank for rank in range(ranks) if len(dealt[rank]) < most]
        rank = min(open_ranks, key=lambda r: (load[r], r))
        dealt[rank].append(index)
        load[rank] += costs[index]
    return dealt


def plan(lengths: Sequence[int], capacity: int, ranks: int) -> list[list[list[int]]]:
    """Indices of the sequences by rank and micro-batch; [] is a dummy. Same on every rank.

    Args:
        lengths: inputs that each sequence takes (its tokens minus one).
        capacity: inputs of one micro-batch.
        ranks: how many processes train.
    """
    bins = first_fit_decreasing(lengths, capacity)
    costs = [sum(lengths[i] for i in one) for one in bins]
    dealt = deal_to_ranks(bins, costs, ranks)
    most = max(1, *(len(one) for one in dealt))
    return [[bins[b] for b in one] + [[]] * (most - len(one)) for one in dealt]


def pack(
    rollouts: Sequence[Rollout],
    weights: Sequence[float],
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> MicroBatch:
    """One micro-batch of whole sequences, in the order given; none makes a dummy.

    Args:
        rollouts: sequences of at least two tokens, equal lengths next to each other.
        weights: aggregation weight of each one's tokens.
        dtype: of weights, advantages and log-probabilities.
    """
    if not rollouts:
        nothing = np.zeros(2, np.int64)
        rollouts = [Rollout(nothing, nothing > 0, nothing.astype(np.float32), 0.0, -1)]
        weights = [0.0]
    sizes = [len(rollout.token_ids) - 1 for rollout in rollouts]

    def per_token(values: Sequence[float]) -> NDArray[np.float64]:
        return np.repeat(np.asarray(values, np.float64), sizes)

    mask = np.concatenate([rollout.trained[1:] for rollout in rollouts])
    versions = np.repeat(np.asarray([rollout.version for rollout in rollouts], np.int64), sizes)
    targets = np.concatenate([rollout.token_ids[1:] for rollout in rollouts])
    engine = np.concatenate([rollout.engine_logprobs[1:] for rollout in rollouts])
    assert len(mask) == len(targets) == len(engine) == sum(sizes), "misaligned rollout arrays"

    def real(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.where(mask, values, 0)).to(device=device, dtype=dtype)

    def whole(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values).to(device)

    return MicroBatch(
        inputs_T=whole(np.concatenate([rollout.token_ids[:-1] for rollout in rollouts])),
        positions_T=whole(np.concatenate([np.arange(size) for size in sizes])),
        targets_T=whole(targets),
        mask_T=whole(mask),
        weights_T=real(per_token(weights)),
        advantages_T=real(per_token([rollout.advantage for rollout in rollouts])),
        engine_T=real(engine),
        versions_T=whole(np.where(mask, versions, -1)),
        runs=equal_runs(sizes),
    )


def equal_runs(sizes: Sequence[int]) -> tuple[SegmentRun, ...]:
    """Neighbouring segments of equal length, merged."""
    runs: list[SegmentRun] = []
    start = 0
    for size in sizes:
        if runs and runs[-1].length == size:
            runs[-1] = SegmentRun(runs[-1].start, size, runs[-1].samples + 1)
        else:
            runs.append(SegmentRun(start, size, 1))
        start += size
    return tuple(runs)
