"""Gumbel noise on any device: `prime_core.assignment.gumbel` in torch, word for word.

Used where the logits are on a GPU, so that they needn't leave it. The 24-bit words are exact; the
noise may differ from the numpy version by one unit in the last place.

Legend: B rows, V vocabulary, N single tokens.
"""

from __future__ import annotations

import torch

from prime_core.assignment.gumbel import DOMAIN, GUMBEL_SPAN

_MASK = 0xFFFFFFFF
# Philox4x32 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011).
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_SLACK = 1e-3  # more than float32 loses in the difference


def gumbel_words(
    seeds_N: torch.Tensor, positions_N: torch.Tensor, tokens_N: torch.Tensor
) -> torch.Tensor:
    """The 24-bit words of single tokens; arguments and result [N] int64."""
    zeros_N = torch.zeros_like(tokens_N)
    counter = [tokens_N >> 2, positions_N, zeros_N, zeros_N + DOMAIN]
    key = [seeds_N & _MASK, seeds_N >> 32]
    for turn in range(_ROUNDS):
        if turn:
            key = [(half + weyl) & _MASK for half, weyl in zip(key, _WEYL, strict=True)]
        high_0, low_0 = _product(counter[0], _MULTIPLIERS[0])
        high_1, low_1 = _product(counter[2], _MULTIPLIERS[1])
        counter = [
            high_1 ^ counter[1] ^ key[0],
            low_1,
            high_0 ^ counter[3] ^ key[1],
            low_0,
        ]
    words_4N = torch.stack(counter)
    return words_4N.gather(0, (tokens_N & 3)[None, :])[0] >> 8


def gumbel_noise(
    seeds_N: torch.Tensor, positions_N: torch.Tensor, tokens_N: torch.Tensor
) -> torch.Tensor:
    """Standard Gumbel noise of single tokens, [N] float32."""
    uniform = (gumbel_words(seeds_N, positions_N, tokens_N).double() + 0.5) * 2.0**-24
    return (-(-uniform.log()).log()).float()


def race_on_device(
    logprobs_BV: torch.Tensor,
    seeds_B: torch.Tensor,
    positions_B: torch.Tensor,
    greedy_B: torch.Tensor,
) -> torch.Tensor:
    """The winner of each row's race, [B] int64: `assignment.gumbel_argmax` where the logits are.

    Noise is computed for the tokens that can win alone: a vocabulary's worth of it a row would
    cost more than the layers of a small model.

    Args:
        logprobs_BV: float32.
        greedy_B: rows that take the most probable token instead.
    """
    best_B1 = logprobs_BV.amax(dim=1, keepdim=True)
    rows, tokens = (logprobs_BV >= best_B1 - GUMBEL_SPAN - _SLACK).nonzero(as_tuple=True)
    noise = gumbel_noise(seeds_B[rows], positions_B[rows], tokens)
    noise.masked_fill_(greedy_B[rows], 0.0)
    # One exact sum a token, as on the CPU; equal ones go to the lowest token id.
    sums = logprobs_BV[rows, tokens].double() + noise
    tops_B = torch.full_like(best_B1[:, 0], -torch.inf, dtype=torch.float64)
    tops_B.scatter_reduce_(0, rows, sums, "amax")
    winning = sums == tops_B[rows]
    none_B = torch.full_like(seeds_B, logprobs_BV.shape[1] - 1)
    return none_B.scatter_reduce_(0, rows[winning], tokens[winning], "amin")


def _product(left: torch.Tensor, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low 32 bits of a product of 32-bit words, in int64 that must not overflow."""
    low = left * (right & 0xFFFF)
    high = left * (right >> 16)
    middle = high + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)
