"""What every policy loss keeps: the policy gradient at ratio 1, and the two-sided clip beyond.

Authors inherit `LossContract` and override `make_loss`. Shapes: T tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from prime_core.api import Loss
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override


class LossContract:
    """Inherit, and override `make_loss`.

    Attributes:
        epsilon: the clip around ratio 1; None where the loss has none.
        delta: for a negative advantage the gradient is 0 beyond this ratio (invariant 7); None
            where the loss has no such bound.
    """

    epsilon: ClassVar[float | None] = 0.2
    delta: ClassVar[float | None] = 4.0

    @pytest.fixture
    def make_loss(self) -> Callable[[], Loss]:
        """A function that makes the loss anew."""
        made: Callable[[], Loss] = override("make_loss", "makes the loss")
        return made

    @pytest.fixture
    def loss(self, make_loss: Callable[[], Loss]) -> Loss:
        """The loss under test."""
        return make_loss()

    def test_has_every_member(self, loss: Loss) -> None:
        assert missing_members(loss, [Loss]) == []

    def test_one_finite_loss_per_token(self, loss: Loss) -> None:
        torch = pytest.importorskip("torch")
        old = torch.linspace(-20.0, -0.01, 64)
        new = (old + torch.linspace(-3, 3, 64).roll(7)).clamp(max=0.0).requires_grad_()
        advantages = torch.linspace(-2, 2, 64).roll(13)
        mask = torch.ones(64, dtype=torch.bool)
        losses, metrics = loss.token_losses(new, old, advantages, mask)
        assert losses.shape == (64,)
        assert torch.isfinite(losses).all()
        for name, values in metrics.items():
            assert values.shape == (64,), f"metric {name} has shape {tuple(values.shape)}"
            assert not values.requires_grad, f"metric {name} carries a gradient"
            assert torch.isfinite(values.float()).all(), name
        losses.sum().backward()
        assert torch.isfinite(new.grad).all()

    @pytest.mark.parametrize("advantage", [-1.5, -1.0, 0.25, 1.0])
    def test_on_policy_it_is_the_policy_gradient(self, loss: Loss, advantage: float) -> None:
        assert gradient(loss, ratio=1.0, advantage=advantage) == pytest.approx(-advantage, rel=1e-5)

    @pytest.mark.parametrize("ratio", [0.01, 0.5, 1.0, 1.1, 3.0, 50.0])
    def test_no_advantage_no_gradient(self, loss: Loss, ratio: float) -> None:
        assert gradient(loss, ratio=ratio, advantage=0.0) == 0.0

    @pytest.mark.parametrize("advantage", [-1.0, 1.0])
    @pytest.mark.parametrize("ratio", [0.3, 0.9, 1.1, 1.5])
    def test_no_gradient_points_the_wrong_way(
        self, loss: Loss, ratio: float, advantage: float
    ) -> None:
        assert gradient(loss, ratio=ratio, advantage=advantage) * advantage <= 0.0

    @pytest.mark.parametrize("excess", [1e-3, 0.5, 10.0])
    def test_gain_is_clipped(self, loss: Loss, excess: float) -> None:
        if self.epsilon is None:
            pytest.skip("the loss declares no epsilon")
        above = 1 + self.epsilon + excess
        below = (1 - self.epsilon) / (1 + excess)
        assert gradient(loss, ratio=above, advantage=1.0) == 0.0
        assert gradient(loss, ratio=below, advantage=-1.0) == 0.0

    def test_correction_is_not_clipped(self, loss: Loss) -> None:
        """A token that moved the wrong way keeps its gradient, up to delta."""
        assert gradient(loss, ratio=0.5, advantage=1.0) < 0.0
        assert gradient(loss, ratio=1.5, advantage=-1.0) > 0.0

    @pytest.mark.parametrize("excess", [1e-3, 1.0, 100.0])
    def test_two_sided_clip(self, loss: Loss, excess: float) -> None:
        if self.delta is None:
            pytest.skip("the loss declares no delta")
        assert gradient(loss, ratio=self.delta + excess, advantage=-1.0) == 0.0
        assert gradient(loss, ratio=self.delta - 0.01, advantage=-1.0) > 0.0

    def test_tokens_do_not_mix(self, loss: Loss) -> None:
        torch = pytest.importorskip("torch")
        old = torch.tensor([-1.0, -2.0, -3.0])
        new = torch.tensor([-1.1, -1.9, -3.0], requires_grad=True)
        advantages = torch.tensor([1.0, -1.0, 0.5])
        mask = torch.tensor([True, True, True])
        losses, _ = loss.token_losses(new, old, advantages, mask)
        (gradients,) = torch.autograd.grad(losses[1], new)
        assert gradients[0] == 0.0
        assert gradients[2] == 0.0

    def test_masked_tokens_stay_finite(self, loss: Loss) -> None:
        """A weight of 0 removes a masked token only where its loss and gradient are finite."""
        torch = pytest.importorskip("torch")
        old = torch.tensor([-1.0, -1e30, 0.0])
        new = torch.tensor([-1.0, 0.0, -1e30], requires_grad=True)
        mask = torch.tensor([True, False, False])
        losses, _ = loss.token_losses(new, old, torch.tensor([1.0, -1.0, -1.0]), mask)
        (losses * mask).sum().backward()
        assert torch.isfinite(losses[0])
        assert new.grad.tolist() == pytest.approx([-1.0, 0.0, 0.0])


def gradient(loss: Loss, *, ratio: float, advantage: float) -> float:
    """d loss / d logprob of one token at a given ratio and advantage."""
    torch: Any = pytest.importorskip("torch")
    old = torch.tensor([-30.0], dtype=torch.float64)
    new = (old + math.log(ratio)).requires_grad_()
    mask = torch.tensor([True])
    advantages = torch.tensor([advantage], dtype=torch.float64)
    losses, _ = loss.token_losses(new, old, advantages, mask)
    (found,) = torch.autograd.grad(losses.sum(), new)
    return float(found)
