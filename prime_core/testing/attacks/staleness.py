"""How likely weights of an earlier version are found, by how far training has moved since.

The node generates with the run's policy and claims one that some optimizer updates lead to. Lags
inside of `async.max` that are claimed openly are allowed, so they are no attack at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from prime_core.api import PolicyFiles
from prime_core.testing.attacks.attack import Attempt, write
from prime_core.testing.attacks.node import produce
from prime_core.toploc.noise import upper_bound

if TYPE_CHECKING:
    from prime_core.store.schema import RolloutRow
    from prime_core.testing.attacks.judging import Judge
    from prime_core.testing.attacks.world import World

ROWS = 32  # rollouts of one update


@dataclass(frozen=True, slots=True)
class Power:
    """How many files of a stale node were found.

    Attributes:
        lag: versions between the weights that generated and those that were claimed.
        moved: root mean square of the weights' change by that of the weights.
    """

    learning_rate: float
    lag: int
    moved: float
    files: int
    caught: int
    by: Mapping[str, int]

    @property
    def bound(self) -> float:
        """Clopper-Pearson's 95 % lower bound on the share that is caught."""
        return 1.0 - upper_bound(self.files - self.caught, self.files)


def power(
    world: World,
    judge: Judge,
    attempts: Sequence[Attempt],
    *,
    learning_rates: Sequence[float],
    lags: Sequence[int],
    files: int,
) -> list[Power]:
    """Detection power for each learning rate and lag.

    Args:
        attempts: honest submissions, whose rollouts are trained on.
        files: of each combination.
    """
    rows = [row for attempt in attempts for row in attempt.rows if row.length]
    found = []
    for rate in learning_rates:
        for lag, policy, moved in _versions(world, rows, rate, lags):
            version = world.add_policy(policy)
            dispatches = [world.dispatch(n, version) for n in range(files)]
            made = produce(world, dispatches, world.engine(), world.base)
            stale = [
                write(world.signer, dispatch, each, world.meta)
                for dispatch, each in zip(dispatches, made, strict=True)
            ]
            judged = judge.judge(stale, apart=False)
            caught = [each for each in judged if each.caught]
            by = dict(Counter(each.verdict.check for each in caught))
            found.append(Power(rate, lag, moved, files, len(caught), by))
            world.forget()
    return found


def _versions(
    world: World, rows: Sequence[RolloutRow], rate: float, lags: Sequence[int]
) -> Iterator[tuple[int, PolicyFiles, float]]:
    """(lag, policy, how far it moved) after so many versions of training at one learning rate."""
    import torch
    from safetensors.torch import save_file

    from prime_core.engines.model_files import build_model
    from prime_core.engines.strict_load import load_weights

    model: Any = build_model(world.base.model_dir, dtype="float32")
    load_weights(model, world.base.weights)
    model.train().requires_grad_(True)
    start = [each.detach().clone() for each in model.parameters()]
    settings = world.config.trainer
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0)
    update = 0
    for lag in range(1, max(lags) + 1):
        for _ in range(settings.optimizer_steps):
            begin = update * ROWS % max(1, len(rows) - ROWS)
            _step(model, optimizer, rows[begin : begin + ROWS], settings.max_grad_norm)
            update += 1
        if lag in lags:
            folder = world.folder / f"lag-{rate:g}-{lag}"
            folder.mkdir(exist_ok=True)
            named = {name: each.detach() for name, each in model.named_parameters()}
            dtype = getattr(torch, world.facts.dtype)
            save_file(
                {name: each.to(dtype).contiguous() for name, each in named.items()},
                folder / "model.safetensors",
                metadata={"format": "pt"},
            )
            change = sum(
                float((now.detach() - was).square().sum())
                for now, was in zip(model.parameters(), start, strict=True)
            )
            size = sum(float(was.square().sum()) for was in start)
            weights = (folder / "model.safetensors",)
            yield lag, replace(world.base, weights=weights), (change / size) ** 0.5


def _step(model: Any, optimizer: Any, rows: Sequence[RolloutRow], max_norm: float) -> None:
    """One policy-gradient update; advantages are rewards less their mean, by their deviation."""
    import torch

    longest = max(len(row.prompt_tokens) + len(row.completion_tokens) for row in rows)
    ids_BT = torch.zeros((len(rows), longest), dtype=torch.long)
    weight_BT = torch.zeros((len(rows), longest))
    rewards = torch.tensor([row.reward or 0.0 for row in rows])
    advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
    for index, row in enumerate(rows):
        tokens = [*row.prompt_tokens, *row.completion_tokens]
        ids_BT[index, : len(tokens)] = torch.tensor(tokens)
        mask = torch.tensor(row.completion_mask, dtype=torch.float32)
        weight_BT[index, len(row.prompt_tokens) : len(tokens)] = mask * advantages[index]
    # right padding: nothing attends to what comes later
    logits_BTV = model(input_ids=ids_BT, use_cache=False).logits.float()
    logprobs_BT = logits_BTV[:, :-1].log_softmax(-1).gather(2, ids_BT[:, 1:, None])[..., 0]
    loss = -(logprobs_BT * weight_BT[:, 1:]).sum() / weight_BT.ne(0).sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
