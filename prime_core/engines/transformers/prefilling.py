"""Recomputes the choices of whole sequences in one forward pass each batch, without a cache.

Called by `engine.prefill`, and by whoever checks what a worker claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from prime_core.api import EngineError, Prefill, PrefillDraws, PrefillRequest
from prime_core.engines.transformers.decoding import left_pad, position_ids
from prime_core.engines.transformers.race import draws

if TYPE_CHECKING:
    from prime_core.engines.transformers.forward import Forward

# Floats of one batch's logits: 256 MiB, so that a large vocabulary doesn't fill the memory.
_LOGIT_BUDGET = 1 << 26


def prefill(forward: Forward, requests: Sequence[PrefillRequest], batch_size: int) -> list[Prefill]:
    """One `Prefill` a request, in order."""
    return [
        result
        for batch in _batches(requests, batch_size, forward.config.vocab_size)
        for result in _prefill_batch(forward, batch)
    ]


def _batches(
    requests: Sequence[PrefillRequest], batch_size: int, vocab: int
) -> Iterator[list[PrefillRequest]]:
    batch: list[PrefillRequest] = []
    for request in requests:
        longest = max(_kept(member) for member in [*batch, request])
        if batch and (
            len(batch) == batch_size or (len(batch) + 1) * longest * vocab > _LOGIT_BUDGET
        ):
            yield batch
            batch = []
        batch.append(request)
    if batch:
        yield batch


def _kept(request: PrefillRequest) -> int:
    """Positions whose logits are needed: from the one before `start` to the last but one."""
    return len(request.token_ids) - request.start + 1


def _prefill_batch(forward: Forward, batch: list[PrefillRequest]) -> list[Prefill]:
    ids_BT, mask_BT, _ = left_pad([request.token_ids for request in batch])
    keep = max(_kept(request) for request in batch)
    logits_BKV, hidden_BKD = forward.last_tokens(ids_BT, mask_BT, position_ids(mask_BT), keep)
    results = []
    for row, request in enumerate(batch):
        # Left padding: every row ends at the same column, and its last logits choose nothing.
        first = keep - _kept(request)
        logits_NV = logits_BKV[row, first:-1].float()
        if request.temperature not in (0.0, 1.0):
            logits_NV = logits_NV / request.temperature
        chosen_N1 = torch.tensor(request.token_ids[request.start :])[:, None]
        logprobs_NV = logits_NV.log_softmax(dim=-1)
        if logprobs_NV[:, 0].isnan().any():  # one NaN makes the whole row NaN
            raise EngineError(
                "logits hold NaN",
                where="prefill",
                fix="use dtype float32, or look at the weights that the trainer published",
            )
        results.append(
            Prefill(
                logprobs=logprobs_NV.gather(1, chosen_N1)[:, 0].numpy(),
                hidden_states=hidden_BKD[row, first:-1].float().numpy(),
                top=_top(logprobs_NV, request.top),
                draws=_draws(logprobs_NV, chosen_N1[:, 0], request),
            )
        )
    return results


def _draws(
    logprobs_NV: torch.Tensor, chosen_N: torch.Tensor, request: PrefillRequest
) -> PrefillDraws | None:
    if request.seed is None:
        return None
    return draws(logprobs_NV, chosen_N, request.seed, request.positions)


def _top(logprobs_NV: torch.Tensor, count: int) -> tuple[tuple[tuple[int, float], ...], ...]:
    if count == 0:
        return ()
    values_NK, tokens_NK = logprobs_NV.topk(min(count, logprobs_NV.shape[-1]), dim=-1)
    return tuple(
        tuple(zip(tokens, values, strict=True))
        for tokens, values in zip(tokens_NK.tolist(), values_NK.tolist(), strict=True)
    )
