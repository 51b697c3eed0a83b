"""The Gumbel race: which token wins a step, given log-probabilities and a rollout's seed.

Called once a token by `decoding`. A token's noise depends on (seed, position, token) alone, so that
a rollout can be regenerated in any batch.

Legend: B rows, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from prime_core.assignment import gumbel, gumbel_argmax

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
