"""The Gumbel race: which token wins a step, given log-probabilities and a rollout's seed.

Called once a token by `decoding`. A token's noise depends on (seed, position, token) alone, so that
a rollout can be regenerated in any batch; restricting the race to tokens that can still win changes
no winner.

Legend: B rows, V vocabulary, C candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from prime_core.assignment import gumbel

if TYPE_CHECKING:
    from numpy.typing import NDArray

# gumbel() lies between -2.9 and 17.4 (24-bit words), so a token further below the best
# log-probability than this can't win (DESIGN section 6).
REACH_NATS = 20.3

# Two computations of the same logits differ by their rounding. A race whose two best tokens are
# closer than this may end differently in another batch; measured differences stay far below.
RACE_MARGIN: dict[str, float] = {"float32": 1e-3, "bfloat16": 1.0}

# A vocabulary this small is raced whole: finding candidates would cost more than their noise.
_WHOLE_RACE_VOCAB = 1024
# Four neighbouring tokens share one block of noise, so that single candidates cost four times as
# much each; above this share of the vocabulary the whole race is cheaper.
_CANDIDATE_SHARE = 0.2


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
    """
    if greedy_B.all():
        return logprobs_BV.argmax(dim=-1)
    if logprobs_BV.shape[1] <= _WHOLE_RACE_VOCAB:
        scores_BV = logprobs_BV + whole_noise(seeds_B, positions_B, logprobs_BV.shape[1])
        winners_B = scores_BV.argmax(dim=-1)
    else:
        winners_B = _race_candidates(logprobs_BV, seeds_B, positions_B)
    if greedy_B.any():
        mask_B = torch.from_numpy(greedy_B)
        winners_B = torch.where(mask_B, logprobs_BV.argmax(dim=-1), winners_B)
    return winners_B


def whole_noise(
    seeds_B: NDArray[np.int64], positions_B: NDArray[np.int64], vocab: int
) -> torch.Tensor:
    """Noise of every token of the vocabulary, [B, V] float32."""
    noise_BV = gumbel(seeds_B, positions_B, np.arange(vocab, dtype=np.int64))
    return torch.from_numpy(noise_BV)


def race_margins(
    logprobs_BV: torch.Tensor, seeds_B: NDArray[np.int64], positions_B: NDArray[np.int64]
) -> torch.Tensor:
    """How far the winner of each race was ahead of the second, in nats, [B] float32."""
    noise_BV = whole_noise(seeds_B, positions_B, logprobs_BV.shape[1])
    best_B2 = (logprobs_BV + noise_BV).topk(2, dim=-1).values
    return best_B2[:, 0] - best_B2[:, 1]


def _race_candidates(
    logprobs_BV: torch.Tensor, seeds_B: NDArray[np.int64], positions_B: NDArray[np.int64]
) -> torch.Tensor:
    rows, vocab = logprobs_BV.shape
    floor_B1 = logprobs_BV.amax(dim=-1, keepdim=True) - REACH_NATS
    row_C, token_C = (logprobs_BV >= floor_B1).nonzero(as_tuple=True)
    if len(row_C) > _CANDIDATE_SHARE * rows * vocab:
        return (logprobs_BV + whole_noise(seeds_B, positions_B, vocab)).argmax(dim=-1)
    picked_C = row_C.numpy()
    noise_C1 = gumbel(seeds_B[picked_C], positions_B[picked_C], token_C.numpy()[:, None])
    scores_C = logprobs_BV[row_C, token_C] + torch.from_numpy(noise_C1[:, 0])
    scores_BV = torch.full_like(logprobs_BV, -torch.inf)
    scores_BV[row_C, token_C] = scores_C
    return scores_BV.argmax(dim=-1)
