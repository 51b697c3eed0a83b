"""Which rollouts go into which micro-batch of which rank: first-fit-decreasing, nothing truncated.

`grpo.py` plans the batch of one optimizer step for all ranks at once; `micro.py` makes the tensors.
Every rank gets the same number of micro-batches, because FSDP's collectives must match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# a prompt is shared where that saves this part of the group's inputs: branches attend through a
# mask, which costs what it saves where completions are much longer than the prompt
MIN_SAVED = 0.25


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

    @property
    def input_count(self) -> int:
        """Inputs it takes alone: its last token is only ever a target."""
        return len(self.token_ids) - 1

    @property
    def prompt(self) -> NDArray[np.int64]:
        """The tokens before the first trained one."""
        return self.token_ids[: int(self.trained.argmax())]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Rollouts that are computed together: one alone, or several that share their prompt.

    Attributes:
        members: indices of the rollouts.
        shared: tokens of the shared prompt; 0 for a rollout alone.
        inputs: tokens that go through the model.
    """

    members: tuple[int, ...]
    shared: int
    inputs: int


def bundle(groups: Sequence[Sequence[Rollout]], capacity: int) -> list[Bundle]:
    """Bundles of at most `capacity` inputs (unless one rollout alone has more).

    Members index the rollouts of all groups, one group after the other.
    """
    bundles: list[Bundle] = []
    first = 0
    for group in groups:
        shared = _shared_prompt(group)
        members: list[int] = []
        inputs = shared
        for index, rollout in enumerate(group, start=first):
            if not shared:
                bundles.append(Bundle((index,), 0, rollout.input_count))
                continue
            more = rollout.input_count - shared
            if members and inputs + more > capacity:
                bundles.append(Bundle(tuple(members), shared, inputs))
                members, inputs = [], shared
            members.append(index)
            inputs += more
        if members:
            bundles.append(Bundle(tuple(members), shared, inputs))
        first += len(group)
    return bundles


def _shared_prompt(group: Sequence[Rollout]) -> int:
    """Tokens of the prompt that a group shares, 0 where sharing it doesn't pay."""
    if len(group) < 2:
        return 0
    prompt = group[0].prompt
    if any(not np.array_equal(one.prompt, prompt) or not one.token_count for one in group):
        return 0
    saved = len(prompt) * (len(group) - 1)
    return len(prompt) if saved >= MIN_SAVED * sum(one.input_count for one in group) else 0


def first_fit_decreasing(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Bins of indices, no bin longer than `capacity` unless it holds one longer item alone.

    Deterministic: ties go by index.
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
    """Bin indices per rank: heaviest bin to lightest rank, at most ceil(bins / ranks) each."""
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
    """Indices of the items by rank and micro-batch; [] is a dummy. Same on every rank.

    Args:
        lengths: inputs that each item takes.
        capacity: inputs of one micro-batch.
        ranks: how many processes train.
    """
    bins = first_fit_decreasing(lengths, capacity)
    costs = [sum(lengths[i] for i in one) for one in bins]
    dealt = deal_to_ranks(bins, costs, ranks)
    most = max(1, *(len(one) for one in dealt))
    return [[bins[b] for b in one] + [[]] * (most - len(one)) for one in dealt]
