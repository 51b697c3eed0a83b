"""Log-probabilities and entropies of chosen tokens without keeping a [T, V] tensor.

`model.py` calls `token_logprobs` on the rows that are trained. The logits of a chunk of rows exist
only while it is worked on, and once more in backward; values and gradients equal the naive ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_LOGITS = 2**23  # logits alive at once: 256 rows of a 32k vocabulary, 32 MiB in float32
MIN_CHUNK_ROWS = 64  # fewer rows would read the whole head for next to no work


def token_logprobs(
    hidden_ND: Tensor,
    head_VD: Tensor,
    targets_N: Tensor,
    temperature: float,
    *,
    chunk_rows: int | None = None,
) -> tuple[Tensor, Tensor]:
    """log p(target) and the entropy of p, both [N], p = softmax(hidden @ head.T / temperature).

    The product is taken in the dtype of its factors, as inference engines do; everything behind it
    in float32 (float64 for float64 factors). Both results carry gradients to `hidden` and `head`.

    Args:
        hidden_ND: post-norm hidden states.
        head_VD: the output layer's weight.
        targets_N: token ids.
        temperature: > 0, that of the sampler, or the importance ratio is wrong.
        chunk_rows: rows per chunk; by default as many as make `CHUNK_LOGITS` logits.
    """
    rows = chunk_rows or max(MIN_CHUNK_ROWS, CHUNK_LOGITS // head_VD.shape[0])
    result: tuple[Tensor, Tensor] = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden_ND, head_VD, targets_N, temperature, rows
    )
    return result


def _chunk_logits(hidden_CD: Tensor, head_VD: Tensor, temperature: float) -> Tensor:
    logits_CV = hidden_CD @ head_VD.T
    if logits_CV.dtype != torch.float64:
        logits_CV = logits_CV.float()
    return logits_CV.div_(temperature) if temperature != 1.0 else logits_CV


class _TokenLogprobs(torch.autograd.Function):
    """Forward keeps two numbers a row; backward recomputes the logits chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        head_VD: Tensor,
        targets_N: Tensor,
        temperature: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        dtype = torch.float64 if hidden_ND.dtype == torch.float64 else torch.float32
        logsum_N = hidden_ND.new_empty(len(hidden_ND), dtype=dtype)
        logprobs_N, entropies_N = torch.empty_like(logsum_N), torch.empty_like(logsum_N)
        for start in range(0, len(hidden_ND), rows):
            chunk = slice(start, start + rows)
            logits_CV = _chunk_logits(hidden_ND[chunk], head_VD, temperature)
            logsum_C = torch.logsumexp(logits_CV, dim=-1)
            chosen_C = logits_CV.gather(1, targets_N[chunk, None]).squeeze(1)
            probs_CV = (logits_CV - logsum_C[:, None]).exp_()
            logsum_N[chunk] = logsum_C
            logprobs_N[chunk] = chosen_C - logsum_C
            entropies_N[chunk] = logsum_C - torch.linalg.vecdot(probs_CV, logits_CV)
        ctx.save_for_backward(hidden_ND, head_VD, targets_N, logsum_N, entropies_N)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)
        return logprobs_N, entropies_N

    @staticmethod
    def backward(
        ctx: Any, grad_logprobs_N: Tensor | None, grad_entropies_N: Tensor | None
    ) -> tuple[Tensor, Tensor, None, None, None]:
        hidden_ND, head_VD, targets_N, logsum_N, entropies_N = ctx.saved_tensors
        grad_hidden_ND = torch.zeros_like(hidden_ND)
        grad_head_VD = torch.zeros_like(head_VD, dtype=logsum_N.dtype)
        for start in range(0, len(hidden_ND), ctx.rows):
            chunk = slice(start, start + ctx.rows)
            # log p, then d/dlogits of: logprob = onehot - p; entropy = -p (log p + entropy)
            logp_CV = _chunk_logits(hidden_ND[chunk], head_VD, ctx.temperature)
            logp_CV.sub_(logsum_N[chunk, None])
            grad_CV = logp_CV.exp()
            if grad_entropies_N is None:
                scale_C = None if grad_logprobs_N is None else grad_logprobs_N[chunk, None]
                grad_CV.mul_(-scale_C if scale_C is not None else 0.0)
            else:
                logp_CV.add_(entropies_N[chunk, None]).mul_(grad_entropies_N[chunk, None])
                if grad_logprobs_N is not None:
                    logp_CV.add_(grad_logprobs_N[chunk, None])
                grad_CV.mul_(logp_CV.neg_())
            if grad_logprobs_N is not None:
                grad_CV.scatter_add_(1, targets_N[chunk, None], grad_logprobs_N[chunk, None])
            grad_CV = grad_CV.div_(ctx.temperature).to(hidden_ND.dtype)
            grad_hidden_ND[chunk] = grad_CV @ head_VD
            grad_head_VD += grad_CV.T @ hidden_ND[chunk]
        return grad_hidden_ND, grad_head_VD.to(head_VD.dtype), None, None, None
