"""Causal attention over packed samples that can't see each other but may share a prompt.

`model.py` selects it in any transformers model by name. A trunk is a sample, or the prompt of a
group; a branch is a completion that continues a trunk. Equally long ones are one batched call, so
that short samples cost no Python loop; a trunk's numbers are bit for bit those it has alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from prime_core.api.errors import RunError

NAME = "prime_segments"


class TrunkRun(NamedTuple):
    """`samples` trunks of `length` tokens, one after the other from token `start`."""

    start: int
    length: int
    samples: int


class BranchRun(NamedTuple):
    """`samples` branches of `length` tokens from token `start`; each continues a trunk.

    `run` is the index of their trunks' run; `trunks` [samples] counts within it.
    """

    start: int
    length: int
    samples: int
    run: int
    trunks: Tensor


class Segments(NamedTuple):
    """How the tokens of a micro-batch attend: all trunks first, then all branches."""

    trunks: tuple[TrunkRun, ...]
    branches: tuple[BranchRun, ...]


def segment_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    segments: Segments,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The transformers attention interface: [1, H, T, D] (H fewer in key and value), [1, T, H, D].

    No dropout: it would make the ratio of a policy with itself differ from 1.
    """
    _refuse_unknown(module, segments, sliding_window, softcap is not None or s_aux is not None)
    gqa = query.shape[1] != key.shape[1]
    outputs, trunk_keys = [], []
    for trunk in segments.trunks:
        q, k, v = (_unpack(tensor, trunk) for tensor in (query, key, value))
        trunk_keys.append((k, v))
        out = scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling, enable_gqa=gqa)
        outputs.append(_repack(out))
    for branch in segments.branches:
        q, k, v = (_unpack(tensor, branch) for tensor in (query, key, value))
        before_k, before_v = (
            kept.index_select(0, branch.trunks) for kept in trunk_keys[branch.run]
        )
        seen = before_k.shape[2]
        # row i sees the whole trunk and its own branch up to itself; a single row sees everything
        mask = torch.ones(branch.length, seen + branch.length, dtype=torch.bool, device=q.device)
        out = scaled_dot_product_attention(
            q,
            torch.cat([before_k, k], dim=2),
            torch.cat([before_v, v], dim=2),
            attn_mask=mask.tril(seen) if branch.length > 1 else None,
            scale=scaling,
            enable_gqa=gqa,
        )
        outputs.append(_repack(out))
    return torch.cat(outputs).unsqueeze(0), None


def _refuse_unknown(
    module: torch.nn.Module, segments: Segments, window: int | None, modified: bool
) -> None:
    if modified:
        raise RunError(
            "this model's attention has soft caps or sinks, which packed training doesn't know",
            where=type(module).__name__,
            fix="train a model with plain causal attention",
        )
    if window is None:
        return
    longest = max(trunk.length for trunk in segments.trunks)
    for branch in segments.branches:
        longest = max(longest, segments.trunks[branch.run].length + branch.length)
    if longest > window:
        raise RunError(
            f"a sample of {longest} tokens exceeds the attention window {window}",
            where=type(module).__name__,
            fix=f"lower engine.max_tokens so that samples stay within {window} tokens",
        )


def _unpack(packed: Tensor, run: TrunkRun | BranchRun) -> Tensor:
    """[1, H, T, D] to [samples, H, length, D]: the run's samples as a batch."""
    _, heads, _, width = packed.shape
    part = packed[0, :, run.start : run.start + run.samples * run.length]
    return part.reshape(heads, run.samples, run.length, width).transpose(0, 1)


def _repack(out: Tensor) -> Tensor:
    """[samples, H, length, D] to [samples * length, H, D]."""
    samples, heads, length, width = out.shape
    return out.transpose(1, 2).reshape(samples * length, heads, width)


def no_mask(*_: Any, **__: Any) -> None:
    """The transformers mask interface: the segments are the mask."""
    return


def register() -> str:
    """Make the attention known to transformers; returns its name. Repeating it changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, segment_attention)
    AttentionMaskInterface.register(NAME, no_mask)
    return NAME
