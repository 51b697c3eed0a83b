"""The races of one step, on the device that holds the logits.

Called by the logits processor once a step. On a CPU it is the transformers engine's own race; on a
GPU the noise is computed there, from the same words.

Legend: B requests, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from prime_core.engines.transformers.race import choose_tokens
from prime_core.engines.vllm.noise import race_on_device
from prime_core.engines.vllm.slots import Slot


def race(logits_BV: torch.Tensor, slots: Sequence[Slot]) -> tuple[torch.Tensor, torch.Tensor]:
    """The winner of each request's race and its log-probability, [B] int64 and [B] float32.

    Log-probabilities are log-softmax(logits / temperature), of the plain logits where greedy. Where
    a row's logits hold NaN, its log-probability is NaN and its token means nothing: the others of
    the batch go on.
    """
    device = logits_BV.device
    temperatures = np.array([slot.temperature for slot in slots], dtype=np.float32)
    greedy_B = temperatures == 0
    divisors = np.where(greedy_B, np.float32(1), temperatures)
    logits_BV = logits_BV.float()
    if (divisors != 1).any():
        logits_BV = logits_BV / torch.from_numpy(divisors).to(device)[:, None]
    logprobs_BV = logits_BV.log_softmax(dim=-1)
    # One NaN makes the whole row of a log-softmax NaN; so does a row of nothing but -inf.
    broken_B1 = logprobs_BV[:, :1].isnan()
    if broken_B1.any():
        logprobs_BV = logprobs_BV.masked_fill(broken_B1, 0.0)
    seeds_B = np.array([slot.seed for slot in slots], dtype=np.int64)
    positions_B = np.array([slot.position for slot in slots], dtype=np.int64)
    if device.type == "cpu":
        tokens_B = choose_tokens(logprobs_BV, seeds_B, positions_B, greedy_B)
    else:
        tokens_B = race_on_device(
            logprobs_BV,
            torch.from_numpy(seeds_B).to(device),
            torch.from_numpy(positions_B).to(device),
            torch.from_numpy(greedy_B).to(device),
        )
    won_B1 = logprobs_BV.gather(1, tokens_B[:, None])
    return tokens_B, won_B1.masked_fill_(broken_B1, torch.nan)[:, 0]
