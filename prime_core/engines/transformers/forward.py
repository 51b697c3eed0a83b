"""One forward pass of a causal model, with the final hidden states that its logits came from.

Called by `decoding` and `prefilling`. The hidden states are caught where they enter the output
embedding, so that they are the post-norm rows of any architecture.
"""

from __future__ import annotations

from typing import Any

import torch

from prime_core.api import EngineError


class Forward:
    """A model in eval mode, asked for the last positions only."""

    def __init__(self, model: Any) -> None:
        head = model.get_output_embeddings()
        if head is None:
            raise EngineError(
                "the model has no output embedding",
                where=type(model).__name__,
                fix="use a causal language model",
            )
        self._model = model
        self._caught: torch.Tensor | None = None
        self._handle = head.register_forward_pre_hook(self._catch)

    @property
    def config(self) -> Any:
        """The model's config."""
        return self._model.config

    def next_token(
        self, ids_BT: torch.Tensor, mask_BS: torch.Tensor, positions_BT: torch.Tensor, cache: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, V] after the last position and the hidden states [B, D] that gave them.

        Args:
            ids_BT: new tokens.
            mask_BS: 1 where a cached or new token is real, left-padded.
            positions_BT: positions of the new tokens.
            cache: the KV cache, which grows by T.
        """
        logits_B1V, hidden_B1D = self._run(ids_BT, mask_BS, positions_BT, cache, keep=1)
        return logits_B1V[:, 0], hidden_B1D[:, 0]

    def last_tokens(
        self, ids_BT: torch.Tensor, mask_BT: torch.Tensor, positions_BT: torch.Tensor, keep: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, keep, V] and hidden states [B, keep, D] of the last `keep` positions."""
        return self._run(ids_BT, mask_BT, positions_BT, None, keep=keep)

    def close(self) -> None:
        """Take the hook out of the model."""
        self._handle.remove()

    def _run(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Any, keep: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=cache is not None,
            logits_to_keep=keep,
        )
        hidden, self._caught = self._caught, None
        assert hidden is not None, "the output embedding was called"
        return output.logits, hidden

    def _catch(self, module: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        self._caught = inputs[0]
