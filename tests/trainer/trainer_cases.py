"""Random rollouts and optimizations for the trainer's tests."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence

import numpy as np
import torch

from prime_core.config.sections import LossSection, TrainerSection
from prime_core.store.trace import Trace
from prime_core.trainer.fsdp import World
from prime_core.trainer.grpo import Optimization
from prime_core.trainer.loss import GrpoLoss
from prime_core.trainer.model import PolicyModel
from prime_core.trainer.packing import Rollout, pack

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


def honest(policy: PolicyModel, one: Rollout) -> Rollout:
    """The rollout with the log-probabilities that the policy itself gives it."""
    with torch.no_grad():
        logprobs, _ = policy(pack([one], [1.0], CPU, next(policy.parameters()).dtype))
    values = np.concatenate([[0.0], logprobs.numpy()]).astype(np.float32)
    return dataclasses.replace(one, engine_logprobs=values)


def honest_groups(policy: PolicyModel, count: int, size: int, seed: int = 0) -> list[list[Rollout]]:
    rng = np.random.default_rng(seed)
    return [
        [
            honest(policy, rollout(int(rng.integers(4, 12)), seed * 10_000 + g * size + i))
            for i in range(size)
        ]
        for g in range(count)
    ]


def double(policy: PolicyModel) -> PolicyModel:
    return copy.deepcopy(policy).double()


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
