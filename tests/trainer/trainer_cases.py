"""Random rollouts and optimizations for the trainer's tests."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from prime_core.config.sections import LossSection, TrainerSection
from prime_core.store.trace import Trace
from prime_core.trainer.fsdp import World
from prime_core.trainer.grpo import Optimization
from prime_core.trainer.loss import GrpoLoss
from prime_core.trainer.micro import MicroBatch, pack
from prime_core.trainer.model import PolicyModel
from prime_core.trainer.packing import Bundle, Rollout

CPU = torch.device("cpu")
ALONE = World(0, 1, CPU)


def rollout(length: int, seed: int, prompt: int = 2, **changes: object) -> Rollout:
    rng = np.random.default_rng(seed)
    trained = np.arange(length) >= prompt
    values = {
        "token_ids": rng.integers(0, 40, length),
        "trained": trained,
        "engine_logprobs": np.where(trained, -rng.random(length), 0).astype(np.float32),
        "advantage": float(rng.normal()),
        "version": 0,
    }
    return Rollout(**{**values, **changes})  # type: ignore[arg-type]


def pack_alone(rollouts: Sequence[Rollout], dtype: torch.dtype = torch.float32) -> MicroBatch:
    """Every rollout in a bundle of its own, weight 1, in the order given where lengths allow."""
    bundles = [Bundle((i,), 0, one.input_count) for i, one in enumerate(rollouts)]
    return pack(rollouts, bundles, [1.0] * len(rollouts), CPU, dtype)


def honest(policy: PolicyModel, one: Rollout) -> Rollout:
    """The rollout with the log-probabilities that the policy itself gives it."""
    with torch.no_grad():
        logprobs, _ = policy(pack_alone([one], next(policy.parameters()).dtype))
    values = np.zeros(len(one.token_ids), np.float32)
    values[one.trained] = logprobs.numpy()
    return dataclasses.replace(one, engine_logprobs=values)


def make_group(size: int, seed: int, prompt: int = 4, longest: int = 6) -> list[Rollout]:
    """Rollouts of one task: one prompt, completions of 1 to `longest` tokens."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 40, prompt)
    group = []
    for index in range(size):
        length = prompt + int(rng.integers(1, longest + 1))
        one = rollout(length, seed * 1000 + index, prompt)
        tokens = np.concatenate([start, one.token_ids[prompt:]])
        group.append(dataclasses.replace(one, token_ids=tokens))
    return group


def honest_groups(policy: PolicyModel, count: int, size: int, seed: int = 0) -> list[list[Rollout]]:
    return [
        [honest(policy, one) for one in make_group(size, seed * 100 + place)]
        for place in range(count)
    ]


def double(policy: PolicyModel) -> PolicyModel:
    """A float64 copy, its norms too: those of transformers compute in float32 whatever the model's
    dtype, which rounds a sum of gradients otherwise than their parts."""
    model = copy.deepcopy(policy).double()
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = partial(_norm, module)  # type: ignore[method-assign]
    return model


def _norm(module: torch.nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    variance = hidden.pow(2).mean(-1, keepdim=True)
    return module.weight * hidden * torch.rsqrt(variance + module.variance_epsilon)


def optimization(
    policy: PolicyModel,
    *,
    terms: dict[str, object] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    **trainer: object,
) -> Optimization:
    """SGD with rate 1 and next to no clipping, so that an update is minus the gradient."""
    defaults = {"lr": 1.0, "max_grad_norm": 1e9, "max_mismatch_kl": 1e9, "optimizer_steps": 1}
    return Optimization(
        optimizer or torch.optim.SGD(policy.parameters(), lr=1.0),
        GrpoLoss(),
        TrainerSection(**{**defaults, **trainer}),  # type: ignore[arg-type]
        LossSection(**(terms or {})),  # type: ignore[arg-type]
    )


class NoTrace(Trace):
    """Spans that go nowhere."""

    def __init__(self) -> None:
        self._file = self  # type: ignore[assignment]

    def append(self, record: object) -> None:
        pass


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
