"""The policy as the trainer sees it: packed tokens in, log-probabilities of the next tokens out.

A transformers causal LM whose vocabulary logits are never whole in memory. `fsdp.py` shards it;
`publish.py` takes its weights out under the names of the Hugging Face layout.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from prime_core.api.errors import RunError
from prime_core.trainer import attention
from prime_core.trainer.logprobs import token_logprobs
from prime_core.trainer.micro import MicroBatch

# settings by which a model changes its logits after the output layer: not known to `logprobs.py`
LOGIT_SETTINGS = ("final_logit_softcapping", "logits_scaling", "logit_scale")


class PolicyModel(nn.Module):
    """Wraps a causal LM so that output layer and log-softmax happen inside one sharded forward."""

    def __init__(self, causal_lm: Any, temperature: float) -> None:
        super().__init__()
        self.causal_lm = causal_lm
        self.temperature = temperature
        causal_lm.set_attn_implementation(attention.register())
        head = causal_lm.get_output_embeddings()
        changed = [
            name
            for name in LOGIT_SETTINGS
            if getattr(causal_lm.config, name, None) not in (None, 1.0)
        ]
        if getattr(head, "bias", None) is not None:
            changed.append("bias of the output layer")
        if changed:
            raise RunError(
                f"this model changes its logits ({', '.join(changed)}), "
                "which the trainer's log-probabilities don't know",
                where=type(causal_lm).__name__,
                fix="train a model whose logits are hidden states times the output layer",
            )

    @property
    def layers(self) -> list[nn.Module]:
        """The decoder layers, in order."""
        return list(self.causal_lm.base_model.layers)

    def forward(self, micro: MicroBatch) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies of the trained tokens, both [N]."""
        hidden_TD = self.causal_lm.base_model(
            input_ids=micro.inputs_T[None],
            position_ids=micro.positions_T[None],
            use_cache=False,
            segments=micro.segments,
        ).last_hidden_state[0]
        return token_logprobs(
            hidden_TD[micro.rows_N],
            self.causal_lm.get_output_embeddings().weight,
            micro.targets_N,
            self.temperature,
        )

    def recompute_activations(self) -> None:
        """Keep only each layer's input for backward and compute the rest again."""
        for layer in self.layers:
            layer.forward = partial(
                checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False
            )


def load_policy(model_dir: Path, temperature: float) -> PolicyModel:
    """The model in a Hugging Face directory: float32 masters, eval mode (no dropout)."""
    from prime_core.engines.model_files import build_model, weight_files
    from prime_core.engines.strict_load import load_weights

    causal_lm = build_model(model_dir, dtype="float32")
    load_weights(causal_lm, weight_files(model_dir))
    return PolicyModel(causal_lm.requires_grad_(True), temperature).eval()


def hub_name(name: str) -> str:
    """The Hugging Face name of a parameter of `PolicyModel`."""
    return name.removeprefix("causal_lm.")
