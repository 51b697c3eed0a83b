"""The Gumbel race: which token wins a step, given log-probabilities and a rollout's seed.

Called once a token by `decoding`, once a sequence by `prefilling`. A token's noise depends on
(seed, position, token) alone, so that a rollout can be regenerated in any batch.

Legend: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from prime_core.api import PrefillDraws
from prime_core.assignment import gumbel, gumbel_argmax, gumbel_at
from prime_core.toploc import race_gaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Two computations of the same logits differ by their rounding. A race whose two best tokens are
# closer than this may end differently in another batch; measured differences stay far below
# (docs/explanation/generation.md).
RACE_MARGIN: dict[str, float] = {"float32": 1e-3, "bfloat16": 1.0}


def choose_tokens(
    logprobs_BV: torch.Tensor,
    seeds_B: NDArray[np.int64],
    positions_B: NDArray[np.int64],
    greedy_B: NDArray[np.bool_],
) -> torch.Tensor:
    """The winner of each row's race, [B] int64.

    Args:
        logprobs_BV: log-softmax of the logits divided by the temperature, float32.
        seeds_B: sampling seeds.
        positions_B: model tokens generated before this one, over all turns.
        greedy_B: rows that take the most probable token instead (lowest id among equals).

    Raises:
        EngineError: a row holds NaN.
    """
    if greedy_B.all():
        return logprobs_BV.argmax(dim=-1)
    winners_B = torch.from_numpy(gumbel_argmax(logprobs_BV.numpy(), seeds_B, positions_B))
    if greedy_B.any():
        winners_B = torch.where(torch.from_numpy(greedy_B), logprobs_BV.argmax(dim=-1), winners_B)
    return winners_B


def race_margins(
    logprobs_BV: torch.Tensor, seeds_B: NDArray[np.int64], positions_B: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How far the winner of each race was ahead of the second, in nats, [B]."""
    tokens_V = np.arange(logprobs_BV.shape[1], dtype=np.int64)
    scores_BV = logprobs_BV.numpy().astype(np.float64) + gumbel(seeds_B, positions_B, tokens_V)
    best_B2 = np.partition(scores_BV, -2, axis=1)[:, -2:]
    return np.asarray(best_B2[:, 1] - best_B2[:, 0])


def draws(
    logprobs_NV: torch.Tensor, chosen_N: torch.Tensor, seed: int, positions: Sequence[int]
) -> PrefillDraws:
    """How the N tokens of one rollout fit the distributions they were drawn from.

    Args:
        logprobs_NV: log-softmax of the logits divided by the temperature, float32.
        chosen_N: the tokens.
        seed: the rollout's sampling seed.
        positions: index of each among its model tokens; below 0 where the environment spoke.
    """
    # float32: a variance off by its rounding is still one, and float64 costs four times more
    weighted_NV = logprobs_NV.exp()
    own_N1 = logprobs_NV.gather(1, chosen_N[:, None])
    lower_N = (weighted_NV * (logprobs_NV < own_N1)).sum(dim=-1)
    upper_N = (weighted_NV * (logprobs_NV <= own_N1)).sum(dim=-1)
    finite_NV = logprobs_NV.clamp(min=-1e4)  # 0 * -inf has no value
    means_N = weighted_NV.mul_(finite_NV).sum(dim=-1).double()
    squares_N = weighted_NV.mul_(finite_NV).sum(dim=-1).double()
    variances_N = (squares_N - means_N**2).clamp(min=0.0)
    gaps_N = np.zeros(len(positions), dtype=np.float64)
    places_N = np.array(positions, dtype=np.int64)
    own = np.flatnonzero(places_N >= 0)

    def noise(rows: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        return gumbel_at(np.full(rows.size, seed, dtype=np.int64), places_N[own[rows]], tokens)

    rows_KV = logprobs_NV[torch.from_numpy(own)].numpy()
    gaps_N[own] = race_gaps(rows_KV, chosen_N.numpy()[own], noise)
    return PrefillDraws(
        means=means_N.numpy(),
        variances=variances_N.numpy(),
        race_gaps=gaps_N,
        lower=lower_N.double().numpy(),
        upper=upper_N.double().numpy(),
    )
