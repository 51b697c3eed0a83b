from __future__ import annotations

import pytest
import torch

from prime_core.api.errors import PluginError
from prime_core.hub import Hub
from prime_core.trainer.advantages import GroupNorm
from prime_core.trainer.guarded import GuardedAdvantage, GuardedLoss
from prime_core.trainer.loss import GrpoLoss

HUB = Hub.discover()


class Returns:
    def __init__(self, value):
        self.value = value

    def advantages(self, rewards):
        return self.value

    def token_losses(self, *_):
        return self.value


class Raises:
    def advantages(self, rewards):
        raise KeyError("mean")

    def token_losses(self, *_):
        raise KeyError("mean")


def losses(inner) -> object:
    tensors = [torch.zeros(3)] * 3
    guarded = GuardedLoss(inner, HUB, "grpo")
    return guarded.token_losses(*tensors, torch.ones(3, dtype=torch.bool))


def test_what_is_right_passes_unchanged() -> None:
    rewards = [1.0, 0.0]
    guarded = GuardedAdvantage(GroupNorm(), HUB, "group_norm")
    assert guarded.advantages(rewards) == GroupNorm().advantages(rewards)
    found, values = losses(GrpoLoss())
    assert found.shape == (3,)
    assert values.keys() == {"clip_low", "clip_high", "clip_delta"}


@pytest.mark.parametrize("nonsense", [[], [1.0], [float("nan"), 0.0]])
def test_advantages_of_another_number_or_not_finite_name_the_plugin(nonsense) -> None:
    with pytest.raises(PluginError, match=r"advantage\.group_norm \(prime-core\)"):
        GuardedAdvantage(Returns(nonsense), HUB, "group_norm").advantages([1.0, 0.0])


@pytest.mark.parametrize(
    "nonsense",
    [
        (torch.zeros(()), {}),
        (torch.zeros(1), {}),
        (torch.zeros(3), {"ratio": torch.zeros(())}),
    ],
)
def test_losses_of_a_shape_that_would_broadcast_name_the_plugin(nonsense) -> None:
    with pytest.raises(PluginError, match=r"loss\.grpo \(prime-core\).*shape"):
        losses(Returns(nonsense))


def test_an_exception_of_a_plugin_at_work_names_it() -> None:
    with pytest.raises(PluginError, match="KeyError"):
        losses(Raises())
    with pytest.raises(PluginError, match="KeyError"):
        GuardedAdvantage(Raises(), HUB, "group_norm").advantages([1.0])
