"""A KV cache that grows in blocks, so that a new token doesn't copy all earlier ones.

Made once a batch by `decoding`; holds exactly what the library's own dynamic cache would hold.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from prime_core.api import EngineError

_BLOCK_TOKENS = 64


class BlockLayer(DynamicLayer):  # type: ignore[misc]
    """One layer's keys and values, views into buffers with room for later tokens.

    Args:
        block: tokens of room that a new buffer gets.
    """

    def __init__(self, block: int) -> None:
        super().__init__()
        self._block = block
        self._room = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [B, heads, T, d] keys and values; returns all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        length = self.keys.shape[-2]
        total = length + key_states.shape[-2]
        if total > self._room:
            self._room = length + self._block
            self._key_buffer = _roomy(self.keys, self._room)
            self._value_buffer = _roomy(self.values, self._room)
        self._key_buffer[..., length:total, :] = key_states
        self._value_buffer[..., length:total, :] = value_states
        self.keys = self._key_buffer[..., :total, :]
        self.values = self._value_buffer[..., :total, :]
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows, in this order; a row may come several times."""
        super().batch_select_indices(indices)
        self._room = 0


def _roomy(states: torch.Tensor, room: int) -> torch.Tensor:
    rows, heads, length, width = states.shape
    buffer = states.new_empty((rows, heads, room, width))
    buffer[..., :length, :] = states
    return buffer


def new_cache(config: Any, new_tokens: int) -> DynamicCache:
    """An empty cache for a model of this config, a prompt and at most `new_tokens` after it.

    Raises:
        EngineError: the model keeps a state that can't be copied from row to row.
    """
    cache = DynamicCache(config=config)
    for index, layer in enumerate(cache.layers):
        if type(layer) is DynamicLayer:
            cache.layers[index] = BlockLayer(min(new_tokens, _BLOCK_TOKENS))
        elif not isinstance(layer, DynamicLayer):
            raise EngineError(
                f"layer {index} keeps a {type(layer).__name__}, not keys and values",
                where="engine transformers",
                fix="use a model with attention in every layer",
            )
    return cache
