"""The terms of the GRPO objective per token, and the weights that aggregate them.

`grpo.py` calls these for every micro-batch; docs/explanation/grpo.md derives them. Every function
is finite at masked tokens, so that a weight of 0 removes them from the loss and from its gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

# exp(20) = 4.9e8: far beyond every clip, far below overflow (an unbounded log-ratio made
# gradients non-finite in several trainers)
MAX_LOG_RATIO = 20.0

Aggregation = Literal["sequence_mean", "token_mean"]


@dataclass(frozen=True, slots=True)
class GrpoLoss:
    """-min(min(r, delta) A, clip(r, 1 - epsilon, 1 + epsilon) A), INTELLECT-2 section 3.4.

    r = exp(logprob - old_logprob). For A < 0 the PPO clip alone lets -r A grow without bound; the
    second bound, delta, stops that: where A < 0 and r > delta the gradient is exactly 0.
    """

    epsilon: float = 0.2
    delta: float = 4.0

    def token_losses(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Per-token losses [N], and per-token shares [N] of the three clips.

        Args:
            logprobs: [N] under the weights that train, with gradient.
            old_logprobs: [N] under the weights at the start of the rollout step.
            advantages: [N], constant over a rollout.
            mask: [N] bool, True where the target is a model token.
        """
        ratio = importance_ratio(logprobs, old_logprobs, mask)
        bounded = torch.clamp(ratio, max=self.delta) * advantages
        clipped = torch.clamp(ratio, 1 - self.epsilon, 1 + self.epsilon) * advantages
        losses = -torch.minimum(bounded, clipped)
        with torch.no_grad():
            shares = {
                "clip_low": (advantages < 0) & (ratio < 1 - self.epsilon),
                "clip_high": (advantages > 0) & (ratio > 1 + self.epsilon),
                "clip_delta": (advantages < 0) & (ratio > self.delta),
            }
        return losses, {name: share.to(losses.dtype) for name, share in shares.items()}


def importance_ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    """exp(logprobs - old_logprobs), [N]; exactly 1 at masked tokens, log bounded by +-20."""
    log_ratio = torch.where(mask, logprobs - old_logprobs, torch.zeros_like(logprobs))
    return torch.exp(torch.clamp(log_ratio, -MAX_LOG_RATIO, MAX_LOG_RATIO))


def k3(logprobs: Tensor, reference: Tensor, mask: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = reference - logprobs, [N] (Schulman's k3): never negative.

    Its mean over tokens drawn from `logprobs` is KL(policy || reference).
    """
    log_ratio = torch.where(mask, reference - logprobs, torch.zeros_like(logprobs))
    log_ratio = torch.clamp(log_ratio, -MAX_LOG_RATIO, MAX_LOG_RATIO)
    return torch.expm1(log_ratio) - log_ratio


def kl_penalty(
    logprobs: Tensor, old_logprobs: Tensor, reference_logprobs: Tensor, mask: Tensor
) -> Tensor:
    """r * k3, [N], with gradient: an unbiased estimate of KL(policy || reference) and its gradient.

    The gradient of k3 alone, on tokens of the policy, is that of KL(reference || policy). The
    ratio repairs it even where its value is 1, because it carries the gradient of the sampling
    distribution (TRL #4637; DeepSeek-V3.2, section 3.1). Unbiased where the tokens come from the
    old policy; rollouts of an older version add the error that the clip bounds for the main term.
    """
    ratio = importance_ratio(logprobs, old_logprobs, mask)
    return ratio * k3(logprobs, reference_logprobs, mask)


def staleness_weights(old_logprobs: Tensor, own_logprobs: Tensor, cap: float) -> Tensor:
    """min(cap, exp(old - own)), [T], without gradient; exactly 1 where old is the own version.

    Truncated importance sampling between the policy at the start of the rollout step (old) and the
    version that generated the token (own). Recomputed old log-probabilities hide how far the two
    have drifted apart: without the weight, tokens that later versions have all but given up are
    pushed down again and again. This is the decoupled objective of AReaL (arXiv 2505.24298,
    section 5.2) with the cap of truncated importance sampling (TRL #3867).
    """
    with torch.no_grad():
        log_ratio = torch.clamp(old_logprobs - own_logprobs, -MAX_LOG_RATIO, MAX_LOG_RATIO)
        return torch.exp(log_ratio).clamp(max=cap)


def sequence_weights(token_counts: Sequence[int], aggregation: Aggregation) -> list[float]:
    """The weight of each token of each sequence, such that weighted token losses sum to the loss.

    Args:
        token_counts: trained tokens of every sequence of the optimizer step's whole batch, over
            all micro-batches and ranks. Sequences without any count nowhere.
        aggregation: `sequence_mean` is the paper's formula, the mean over sequences of the mean
            over their tokens; `token_mean` the mean over all tokens.
    """
    if aggregation == "token_mean":
        total = sum(token_counts)
        return [1 / total if count else 0.0 for count in token_counts]
    sequences = sum(count > 0 for count in token_counts)
    return [1 / (sequences * count) if count else 0.0 for count in token_counts]
