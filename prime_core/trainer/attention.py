"""Causal attention over packed samples that can't see each other.

`model.py` selects it in any transformers model by name. Each run of equally long samples is one
batched call, so a sample's numbers are those it has alone, and short samples don't cost a Python
loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from prime_core.api.errors import RunError

NAME = "prime_segments"


class SegmentRun(NamedTuple):
    """`samples` samples of `length` tokens, one after the other from token `start`."""

    start: int
    length: int
    samples: int


def segment_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    segment_runs: tuple[SegmentRun, ...],
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The transformers attention interface: [1, H, T, D] (H fewer in key and value), [1, T, H, D].

    No dropout: it would make the ratio of a policy with itself differ from 1.
    """
    if softcap is not None or s_aux is not None:
        raise RunError(
            "this model's attention has soft caps or sinks, which packed training doesn't know",
            where=type(module).__name__,
            fix="train a model with plain causal attention",
        )
    outputs = []
    for run in segment_runs:
        if sliding_window is not None and run.length > sliding_window:
            raise RunError(
                f"a sample of {run.length} tokens exceeds the attention window {sliding_window}",
                where=type(module).__name__,
                fix=f"lower engine.max_tokens so that samples stay within {sliding_window} tokens",
            )
        q, k, v = (_unpack(tensor, run) for tensor in (query, key, value))
        out = scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=scaling, enable_gqa=q.shape[1] != k.shape[1]
        )
        outputs.append(out.transpose(1, 2).reshape(run.samples * run.length, *out.shape[1::2]))
    return torch.cat(outputs).unsqueeze(0), None


def _unpack(packed: Tensor, run: SegmentRun) -> Tensor:
    """[1, H, T, D] to [samples, H, length, D]: the run's samples as a batch."""
    _, heads, _, width = packed.shape
    part = packed[0, :, run.start : run.start + run.samples * run.length]
    return part.reshape(heads, run.samples, run.length, width).transpose(0, 1)


def no_mask(*_: Any, **__: Any) -> None:
    """The transformers mask interface: the segments are the mask."""
    return


def register() -> str:
    """Make the attention known to transformers; returns its name. Repeating it changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, segment_attention)
    AttentionMaskInterface.register(NAME, no_mask)
    return NAME
