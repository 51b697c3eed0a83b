"""What a rollout step measures on its tokens: sums here, means over all ranks at its end.

`grpo.py` adds to it, `train.py` logs the result. Means are over trained tokens, whatever the
loss's aggregation; nothing here changes what is trained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import torch
from torch import Tensor

from prime_core.api.errors import RunError
from prime_core.trainer.fsdp import World, max_over_ranks, sum_over_ranks
from prime_core.trainer.loss import k3
from prime_core.trainer.micro import MicroBatch


class Measures:
    """Sums of one rollout step on this rank."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._updates: list[tuple[float, float]] = []
        self._largest_gap = 0.0
        self._mismatch: dict[str, float] = {}
        self.forward_tokens = 0  # inputs of passes without gradient
        self.train_tokens = 0  # inputs of passes with gradient

    @torch.no_grad()
    def add_mismatch(self, micro: MicroBatch) -> None:
        """Engine against trainer under the rollouts' own version, and that against old.

        Both are k3 estimates on tokens that the own version drew: KL(engine || trainer) and
        KL(own version || current). They separate a defect from what asynchrony costs.
        """
        self._add_sums(
            {
                "probed": torch.ones_like(micro.own_N),
                "mismatch/kl": k3(micro.engine_N, micro.own_N, micro.mask_N),
                "drift/kl": k3(micro.own_N, micro.old_N, micro.mask_N),
            }
        )
        gaps_N = (micro.own_N - micro.engine_N).abs()
        if len(gaps_N):
            self._largest_gap = max(self._largest_gap, float(gaps_N.max()))

    @torch.no_grad()
    def add_micro(
        self,
        micro: MicroBatch,
        loss: Tensor,
        logprobs_N: Tensor,
        entropies_N: Tensor,
        extra: Mapping[str, Tensor],
    ) -> None:
        """One micro-batch that was trained; `extra` holds named values [N] of the loss's terms."""
        self.train_tokens += len(micro.inputs_T)
        self._sums["loss"] += float(loss)
        self._add_sums(
            {
                "tokens": torch.ones_like(logprobs_N),
                "policy/entropy": entropies_N,
                "policy/kl_old": k3(micro.old_N, logprobs_N, micro.mask_N),
                **extra,
            }
        )

    def _add_sums(self, values: Mapping[str, Tensor]) -> None:
        """Add sums over trained tokens; one transfer from the device for all of them."""
        stacked = torch.stack(list(values.values())).double()
        for name, total in zip(values, stacked.sum(dim=1).tolist(), strict=True):
            self._sums[name] += total

    def add_update(self, grad_norm: float, lr: float) -> None:
        """One optimizer step: the gradient norm before clipping, and the learning rate."""
        self._updates.append((grad_norm, lr))

    def gate_mismatch(self, limit: float, world: World) -> None:
        """Reduce the mismatch over ranks, and stop the run where it exceeds the limit.

        Raises:
            RunError: names what usually makes engine and trainer disagree.
        """
        names = ("probed", "mismatch/kl", "drift/kl")
        probed, mismatch, drift = sum_over_ranks([self._sums.pop(n, 0.0) for n in names], world)
        self._mismatch = {
            "mismatch/kl": mismatch / max(1.0, probed),
            "mismatch/max": max_over_ranks(self._largest_gap, world),
            "drift/kl": drift / max(1.0, probed),
        }
        found = self._mismatch["mismatch/kl"]
        if not found <= limit:
            raise RunError(
                f"engine and trainer disagree by {found:.4g} nats a token under the same policy "
                f"version (limit {limit:g}; largest gap of one token "
                f"{self._mismatch['mismatch/max']:.4g}), so importance ratios would be wrong",
                where="trainer.max_mismatch_kl",
                fix="check, in this order: the sampling temperature that log-probabilities were "
                "taken at; a truncating sampler (top_p, top_k, min_p); weights or caches of an "
                "older version in the engine; model.dtype against trainer.param_dtype; a chat "
                "template or tokenizer that differs from the run's model/; raise the limit only "
                "for bfloat16 rounding",
            )

    def result(self, world: World) -> dict[str, float]:
        """Everything as means over ranks, tokens and optimizer steps. Collective."""
        names = sorted(self._sums)
        values = [*(self._sums[n] for n in names), self.forward_tokens, self.train_tokens]
        *sums, forward, trained = sum_over_ranks(values, world)
        by_name = dict(zip(names, sums, strict=True))
        tokens = by_name.pop("tokens", 0.0)
        updates = max(1, len(self._updates))
        norms = [norm for norm, _ in self._updates]
        return {
            "loss/mean": by_name.pop("loss", 0.0) / updates,
            **{name: value / max(1.0, tokens) for name, value in by_name.items()},
            **self._mismatch,
            "optimizer/grad_norm": sum(norms) / updates,
            "optimizer/grad_norm_max": max(norms, default=0.0),
            "optimizer/lr": self._updates[-1][1] if self._updates else 0.0,
            "tokens/trained": tokens,
            "tokens/packed": trained,
            "tokens/forward": forward,
        }
