"""Gumbel noise on any device: `prime_core.assignment.gumbel` in torch, word for word.

Used where the logits are on a GPU, so that they needn't leave it. The 24-bit words are exact; the
noise may differ from the numpy version by one unit in the last place.

Legend: B rows, V tokens, N blocks of 4 tokens.
"""

from __future__ import annotations

import torch

from prime_core.assignment.gumbel import DOMAIN

_MASK = 0xFFFFFFFF
# Philox4x32 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011).
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def gumbel_words(seeds_B: torch.Tensor, positions_B: torch.Tensor, vocab: int) -> torch.Tensor:
    """The 24-bit words of tokens 0..vocab-1, [B, V] int64; arguments [B] int64."""
    blocks_N = torch.arange((vocab + 3) // 4, device=seeds_B.device)
    shape = (seeds_B.shape[0], blocks_N.shape[0])
    counter = [
        blocks_N[None, :].expand(shape),
        positions_B[:, None].expand(shape),
        torch.zeros(shape, dtype=torch.int64, device=seeds_B.device),
        torch.full(shape, DOMAIN, dtype=torch.int64, device=seeds_B.device),
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
    return (torch.stack(counter, dim=-1).reshape(shape[0], -1) >> 8)[:, :vocab]


def gumbel_noise(seeds_B: torch.Tensor, positions_B: torch.Tensor, vocab: int) -> torch.Tensor:
    """Standard Gumbel noise of tokens 0..vocab-1, [B, V] float32."""
    uniform = (gumbel_words(seeds_B, positions_B, vocab).double() + 0.5) * 2.0**-24
    return (-(-uniform.log()).log()).float()


def _product(left: torch.Tensor, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low 32 bits of a product of 32-bit words, in int64 that must not overflow."""
    low = left * (right & 0xFFFF)
    high = left * (right >> 16)
    middle = high + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)
