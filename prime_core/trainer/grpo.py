"""One rollout step of GRPO, top to bottom (docs/explanation/grpo.md has the formulas).

`train.py` calls `train_rollout_step`. Old log-probabilities are fixed under the weights at the
step's start, then each optimizer step trains its share of the groups once. All denominators are
global: counted over the optimizer step's whole batch before its first micro-batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from prime_core.api.errors import RunError
from prime_core.api.protocols import Loss
from prime_core.config.sections import LossSection, TrainerSection
from prime_core.store.trace import Trace
from prime_core.trainer.fsdp import World, clip_gradients, sync_gradients
from prime_core.trainer.loss import k3, kl_penalty, sequence_weights, staleness_weights
from prime_core.trainer.measures import Measures
from prime_core.trainer.micro import MicroBatch, pack
from prime_core.trainer.model import PolicyModel
from prime_core.trainer.packing import Rollout, bundle, plan
from prime_core.trainer.weights import WeightBank


@dataclass(slots=True)
class Share:
    """What this rank trains in one optimizer step: as many micro-batches as every other rank.

    `versions` names, for each micro-batch, the policy versions in it on any rank.
    """

    micros: list[MicroBatch]
    versions: list[set[int]]


@dataclass(slots=True)
class Optimization:
    """The optimizer, its place in the learning-rate schedule, and what the loss is made of."""

    optimizer: torch.optim.Optimizer
    loss: Loss
    trainer: TrainerSection
    terms: LossSection
    steps_done: int = 0
    measures: Measures = field(default_factory=Measures)

    @property
    def lr(self) -> float:
        """The learning rate of the next optimizer step: linear warm-up, then constant."""
        warmup = self.trainer.warmup_steps
        return self.trainer.lr * min(1.0, (self.steps_done + 1) / max(1, warmup))


def split_groups(count: int, parts: int) -> list[range]:
    """Group indices of each optimizer step: contiguous, in order, sizes that differ by one."""
    if count < parts:
        raise RunError(
            f"the batch has {count} groups for {parts} optimizer steps",
            fix="lower trainer.optimizer_steps or raise trainer.groups_per_step",
        )
    bounds = [count * part // parts for part in range(parts + 1)]
    return [range(low, high) for low, high in pairwise(bounds)]


def make_share(
    groups: Sequence[Sequence[Rollout]], opt: Optimization, world: World, dtype: torch.dtype
) -> Share:
    """Weigh and pack the batch of one optimizer step; every rank computes the same plan."""
    rollouts = [one for group in groups for one in group]
    weights = sequence_weights([one.token_count for one in rollouts], opt.terms.aggregation)
    capacity = opt.trainer.pack_tokens
    bundles = bundle(groups, capacity)
    planned = plan([one.inputs for one in bundles], capacity, world.size)
    mine = planned[world.rank]
    return Share(
        [pack(rollouts, [bundles[b] for b in one], weights, world.device, dtype) for one in mine],
        [
            {
                rollouts[i].version
                for rank in planned
                for b in rank[place]
                for i in bundles[b].members
            }
            for place in range(len(mine))
        ],
    )


def train_rollout_step(
    policy: PolicyModel,
    groups: Sequence[Sequence[Rollout]],
    version: int,
    bank: WeightBank,
    opt: Optimization,
    world: World,
    trace: Trace,
) -> None:
    """Train the batch of step `version`, in place; what is measured goes to `opt.measures`.

    Args:
        groups: the batch in closed order; advantages are set.
        version: of the weights that the policy holds now.
        bank: holds the versions that generated the batch, and version 0 where KL is on.

    Raises:
        RunError: engine and trainer disagree, or the gradient isn't finite.
    """
    dtype = next(policy.parameters()).dtype
    shares = [
        make_share([groups[g] for g in part], opt, world, dtype)
        for part in split_groups(len(groups), opt.trainer.optimizer_steps)
    ]
    with trace.span("logprobs", step=version):
        fix_logprobs(policy, shares, version, bank, opt, world)
    opt.measures.gate_mismatch(opt.trainer.max_mismatch_kl, world)
    with trace.span("train", step=version):
        for share in shares:
            with trace.span("optimizer", step=version, optimizer_step=opt.steps_done):
                optimizer_step(policy, share.micros, opt, world)


@torch.no_grad()
def fix_logprobs(
    policy: PolicyModel,
    shares: Sequence[Share],
    version: int,
    bank: WeightBank,
    opt: Optimization,
    world: World,
) -> None:
    """Log-probabilities that stay fixed during the step: old, reference, and each rollout's own."""
    micros = [micro for share in shares for micro in share.micros]
    versions = [versions for share in shares for versions in share.versions]
    for micro in micros:
        micro.old_N, _ = policy(micro)
        opt.measures.forward_tokens += len(micro.inputs_T)
    if opt.terms.kl_coef > 0:
        with bank.swapped_in(0):
            for micro in micros:
                micro.reference_N, _ = policy(micro)
                opt.measures.forward_tokens += len(micro.inputs_T)
    # Engine against trainer, under the version that generated: every n-th micro-batch, or all
    # where the loss needs them.
    share = 1.0 if opt.terms.importance_sampling_cap > 0 else opt.trainer.mismatch_share
    probe = range(0, len(micros), max(1, round(1 / share)))
    for place in probe:
        micros[place].own_N = micros[place].old_N.clone()
    for older in sorted(set().union(*versions) - {version}):
        with bank.swapped_in(older):
            for place in (place for place in probe if older in versions[place]):
                micro = micros[place]
                logprobs_N, _ = policy(micro)
                opt.measures.forward_tokens += len(micro.inputs_T)
                micro.own_N = torch.where(micro.versions_N == older, logprobs_N, micro.own_N)
    for place in probe:
        opt.measures.add_mismatch(micros[place])


def optimizer_step(
    policy: PolicyModel, micros: Sequence[MicroBatch], opt: Optimization, world: World
) -> None:
    """One update: backward of every micro-batch, one reduction, clip, AdamW."""
    for place, micro in enumerate(micros):
        sync_gradients(policy, on=place == len(micros) - 1)
        logprobs_N, entropies_N = policy(micro)
        losses_N, measured = micro_losses(micro, logprobs_N, entropies_N, opt)
        loss = (losses_N * micro.weights_N).sum()
        # FSDP averages gradients over ranks; the loss is a sum over all of them.
        (loss * world.size).backward()  # type: ignore[no-untyped-call]
        opt.measures.add_micro(micro, loss, logprobs_N, entropies_N, measured)
    norm = clip_gradients(policy, opt.trainer.max_grad_norm)
    if not math.isfinite(norm):
        raise RunError(
            f"the gradient norm is {norm} at optimizer step {opt.steps_done}",
            where="trainer",
            fix="resume from the last checkpoint with a lower trainer.lr, or in float32",
        )
    for group in opt.optimizer.param_groups:
        group["lr"] = opt.lr
    opt.measures.add_update(norm, opt.lr)
    opt.optimizer.step()
    opt.optimizer.zero_grad()
    opt.steps_done += 1


def micro_losses(
    micro: MicroBatch, logprobs_N: Tensor, entropies_N: Tensor, opt: Optimization
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Policy loss, entropy bonus and KL term per token, [N], and named values [N] to log."""
    losses_N, values = opt.loss.token_losses(
        logprobs_N, micro.old_N, micro.advantages_N, micro.mask_N
    )
    measured = {f"loss/{name}": values_N for name, values_N in values.items()}
    if opt.terms.importance_sampling_cap > 0:
        cap = opt.terms.importance_sampling_cap
        staleness_N = staleness_weights(micro.old_N, micro.own_N, cap)
        losses_N = losses_N * staleness_N
        measured["loss/importance_weight"] = staleness_N
        measured["loss/importance_capped"] = (staleness_N >= cap).to(losses_N.dtype)
    if opt.terms.entropy_coef > 0:
        losses_N = losses_N - opt.terms.entropy_coef * entropies_N
    if opt.terms.kl_coef > 0:
        penalty_N = kl_penalty(logprobs_N, micro.old_N, micro.reference_N, micro.mask_N)
        losses_N = losses_N + opt.terms.kl_coef * penalty_N
        measured["policy/kl_reference"] = k3(logprobs_N.detach(), micro.reference_N, micro.mask_N)
    return losses_N, measured
