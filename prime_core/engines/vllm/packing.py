"""Fingerprints of weights that vLLM packs away: on CPUs it keeps a linear layer's only in a kernel.

Imported by `capture`, so in every worker before the first weights are loaded. Invariant: a layer
whose parameter vLLM has emptied carries the fingerprint of what it was packed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps

import torch
from vllm.model_executor.layers.linear import UnquantizedLinearMethod

from prime_core.engines.vllm.fingerprint import fingerprint

_MARK = "prime_packed_from"


def watch_packing() -> None:
    """Have each layer note its weights whenever vLLM has loaded them and is about to pack them."""
    pack = UnquantizedLinearMethod.process_weights_after_loading

    @wraps(pack)
    def watched(method: UnquantizedLinearMethod, layer: torch.nn.Module) -> None:
        weight = layer.weight
        if isinstance(weight, torch.Tensor) and weight.device.type == "cpu" and weight.numel():
            setattr(layer, _MARK, fingerprint([("weight", weight)]))
        pack(method, layer)

    UnquantizedLinearMethod.process_weights_after_loading = watched


def packed(model: torch.nn.Module) -> Iterator[tuple[str, str]]:
    """Names of layers whose weights were packed away, and the fingerprints of these."""
    for name, layer in model.named_modules():
        weight, mark = getattr(layer, "weight", None), getattr(layer, _MARK, None)
        if mark is not None and isinstance(weight, torch.Tensor) and not weight.numel():
            yield name, mark
