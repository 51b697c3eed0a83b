"""Gumbel noise on any device: `prime_core.assignment.gumbel` in torch, word for word.

Used where the logits are on a GPU, so that they needn't leave it. The 24-bit words are exact; the
noise may differ from the numpy version by one unit in the last place.

Legend: B rows, V vocabulary, K = ceil(V / 4) blocks of four tokens.
"""

from __future__ import annotations

import torch

from prime_core.assignment.gumbel import DOMAIN

_MASK = 0xFFFFFFFF
# Philox4x32 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011).
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# Tokens whose noise is computed at once: a few GiB of 64-bit words at the most.
_TOKENS_AT_ONCE = 1 << 26


def gumbel_words(seeds_B: torch.Tensor, positions_B: torch.Tensor, tokens: int) -> torch.Tensor:
    """The 24-bit words of the tokens below `tokens` in each row, [B, V] int64.

    A block of the cipher serves four tokens. No step waits for the device.
    """
    blocks = (tokens + 3) // 4
    counter = [
        torch.arange(blocks, device=seeds_B.device).expand(seeds_B.shape[0], -1),
        positions_B[:, None],
        torch.zeros_like(positions_B)[:, None],
        torch.full_like(positions_B, DOMAIN)[:, None],
    ]
    key = [(seeds_B & _MASK)[:, None], (seeds_B >> 32)[:, None]]
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
    shape = (seeds_B.shape[0], blocks)
    words_BK4 = torch.stack([word.expand(shape) for word in counter], dim=-1)
    return words_BK4.flatten(1)[:, :tokens] >> 8


def gumbel_noise(seeds_B: torch.Tensor, positions_B: torch.Tensor, tokens: int) -> torch.Tensor:
    """Standard Gumbel noise of the tokens below `tokens` in each row, [B, V] float32."""
    uniform = (gumbel_words(seeds_B, positions_B, tokens).double() + 0.5) * 2.0**-24
    return (-(-uniform.log()).log()).float()


def race_on_device(
    logprobs_BV: torch.Tensor,
    seeds_B: torch.Tensor,
    positions_B: torch.Tensor,
    greedy_B: torch.Tensor,
) -> torch.Tensor:
    """The winner of each row's race, [B] int64: `assignment.gumbel_argmax` where the logits are.

    Every token's noise is computed. Most tokens of a model at temperature 1 lie near enough to the
    best one to win, and picking the others out costs more than it spares.

    Args:
        logprobs_BV: float32.
        greedy_B: rows that take the most probable token instead.
    """
    batch, tokens = logprobs_BV.shape
    rows = max(1, _TOKENS_AT_ONCE // tokens)
    parts = [slice(first, first + rows) for first in range(0, batch, rows)]
    return torch.cat(
        [
            _winners(logprobs_BV[part], seeds_B[part], positions_B[part], greedy_B[part])
            for part in parts
        ]
    )


def _winners(
    logprobs_BV: torch.Tensor,
    seeds_B: torch.Tensor,
    positions_B: torch.Tensor,
    greedy_B: torch.Tensor,
) -> torch.Tensor:
    tokens = logprobs_BV.shape[1]
    noise_BV = gumbel_noise(seeds_B, positions_B, tokens).masked_fill_(greedy_B[:, None], 0.0)
    # One exact sum a token, as on the CPU; equal ones go to the lowest token id.
    sums_BV = logprobs_BV.double() + noise_BV
    winning_BV = sums_BV == sums_BV.amax(dim=1, keepdim=True)
    places_V = torch.arange(tokens, device=logprobs_BV.device)
    # A row of NaN has no winner; the caller sees its log-probability.
    return torch.where(winning_BV, places_V, tokens - 1).amin(dim=1)


def _product(left: torch.Tensor, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low 32 bits of a product of 32-bit words.

    The product of two such words may exceed an int64, which then wraps around: its 64 bits are the
    right ones all the same.
    """
    product = left * right
    return (product >> 32) & _MASK, product & _MASK
