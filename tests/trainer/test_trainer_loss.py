from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.trainer.loss import (
    GrpoLoss,
    k3,
    kl_penalty,
    sequence_weights,
    staleness_weights,
)

LOSS = GrpoLoss(epsilon=0.2, delta=4.0)


def one_token(ratio: float, advantage: float) -> tuple[float, float, dict[str, float]]:
    """Loss, gradient with respect to the log-probability, and clip shares of a single token."""
    old = torch.zeros(1, dtype=torch.float64)
    logprob = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    losses, shares = LOSS.token_losses(
        logprob, old, torch.tensor([advantage], dtype=torch.float64), torch.tensor([True])
    )
    (gradient,) = torch.autograd.grad(losses.sum(), logprob)
    return losses.item(), gradient.item(), {name: value.item() for name, value in shares.items()}


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "clipped"),
    [
        (1.0, 1.0, -1.0, -1.0, None),
        (1.1, 2.0, -2.2, -2.2, None),
        (1.5, 1.0, -1.2, 0.0, "clip_high"),
        (0.5, 1.0, -0.5, -0.5, None),  # the pessimistic bound keeps pulling up
        (0.5, -1.0, 0.8, 0.0, "clip_low"),
        (3.0, -1.0, 3.0, 3.0, None),  # still pushes down
        (9.0, -1.0, 4.0, 0.0, "clip_delta"),  # ... but not without bound
    ],
)
def test_two_sided_clip_by_hand(ratio, advantage, loss, gradient, clipped) -> None:
    value, slope, shares = one_token(ratio, advantage)
    assert value == pytest.approx(loss)
    assert slope == pytest.approx(gradient, abs=1e-12)
    assert {name for name, share in shares.items() if share} == ({clipped} if clipped else set())


@given(
    log_ratio=st.floats(-50, 50),
    advantage=st.floats(-10, -1e-3),
    epsilon=st.floats(0.01, 0.9),
    gap=st.floats(1e-3, 10),
)
def test_no_gradient_where_the_advantage_is_negative_and_the_ratio_beyond_delta(
    log_ratio, advantage, epsilon, gap
) -> None:
    loss = GrpoLoss(epsilon, 1 + epsilon + gap)
    logprob = torch.tensor([log_ratio], dtype=torch.float64, requires_grad=True)
    losses, _ = loss.token_losses(
        logprob,
        torch.zeros(1, dtype=torch.float64),
        torch.tensor([advantage], dtype=torch.float64),
        torch.tensor([True]),
    )
    (gradient,) = torch.autograd.grad(losses.sum(), logprob)
    assert math.isfinite(losses.item())
    assert math.isfinite(gradient.item())
    ratio = math.exp(log_ratio)
    if ratio > loss.delta * (1 + 1e-9) or ratio < (1 - epsilon) * (1 - 1e-9):
        assert gradient.item() == 0.0
    elif ratio < loss.delta * (1 - 1e-9) and ratio > (1 - epsilon) * (1 + 1e-9):
        assert gradient.item() == pytest.approx(-ratio * advantage, rel=1e-9)


def test_loss_is_zero_at_the_first_step_and_its_gradient_is_not() -> None:
    logprobs = torch.tensor([-1.0, -2.0], requires_grad=True)
    losses, _ = LOSS.token_losses(
        logprobs, logprobs.detach(), torch.tensor([1.0, -1.0]), torch.tensor([True, True])
    )
    assert losses.sum().item() == 0.0
    (gradient,) = torch.autograd.grad(losses.sum(), logprobs)
    assert gradient.tolist() == [-1.0, 1.0]


def test_masked_tokens_are_finite_and_have_no_gradient_whatever_they_hold() -> None:
    logprobs = torch.tensor([-1.0, -1e30, 0.0], requires_grad=True)
    old = torch.tensor([-1.0, 0.0, -1e30])
    mask = torch.tensor([True, False, False])
    losses, _ = LOSS.token_losses(logprobs, old, torch.ones(3), mask)
    total = losses + k3(logprobs, old, mask) + kl_penalty(logprobs, old, old, mask)
    assert total.isfinite().all()
    (gradient,) = torch.autograd.grad(total.sum(), logprobs)
    assert gradient[1:].tolist() == [0.0, 0.0]


@settings(max_examples=50)
@given(st.lists(st.floats(-3, 3), min_size=9, max_size=9))
def test_kl_penalty_has_the_gradient_of_the_exact_kl(numbers: list[float]) -> None:
    """Over all three tokens, weighted by the old policy, which is where tokens come from."""
    theta, old, reference = torch.tensor(numbers, dtype=torch.float64).view(3, 3)
    theta.requires_grad_(True)
    logp, logold, logref = (torch.log_softmax(x, 0) for x in (theta, old, reference))
    mask = torch.ones(3, dtype=torch.bool)
    estimate = (logold.exp() * kl_penalty(logp, logold, logref, mask)).sum()
    exact = (logp.exp() * (logp - logref)).sum()
    assert estimate.item() == pytest.approx(exact.item(), rel=1e-9, abs=1e-12)
    (ours,) = torch.autograd.grad(estimate, theta, retain_graph=True)
    (true,) = torch.autograd.grad(exact, theta)
    torch.testing.assert_close(ours, true, rtol=1e-9, atol=1e-12)


def test_kl_penalty_has_a_gradient_at_ratio_one_and_k3_alone_has_the_wrong_one() -> None:
    theta = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64, requires_grad=True)
    logp, logref = torch.log_softmax(theta, 0), torch.full((3,), -math.log(3)).double()
    mask = torch.ones(3, dtype=torch.bool)
    weights = logp.detach().exp()
    exact = torch.autograd.grad((logp.exp() * (logp - logref)).sum(), theta, retain_graph=True)[0]
    ours = torch.autograd.grad(
        (weights * kl_penalty(logp, logp.detach(), logref, mask)).sum(), theta, retain_graph=True
    )[0]
    plain = torch.autograd.grad((weights * k3(logp, logref, mask)).sum(), theta)[0]
    torch.testing.assert_close(ours, exact)
    assert (plain - exact).abs().max() > 0.1 * exact.abs().max()


def test_aggregations_by_hand() -> None:
    """Two sequences of 1 and 3 tokens with advantages +1 and -1, ratio 1: losses -1 and +1."""
    counts, losses = [1, 3], [[-1.0], [1.0, 1.0, 1.0]]

    def total(aggregation) -> float:
        weights = sequence_weights(counts, aggregation)
        return sum(weight * sum(row) for weight, row in zip(weights, losses, strict=True))

    assert total("sequence_mean") == 0.0
    assert total("token_mean") == 0.5


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_weights_sum_to_one_and_sequences_without_tokens_change_nothing(counts: list[int]) -> None:
    for aggregation in ("sequence_mean", "token_mean"):
        weights = sequence_weights(counts, aggregation)
        total = sum(w * c for w, c in zip(weights, counts, strict=True))
        assert total == pytest.approx(1.0 if any(counts) else 0.0)
        some = [c for c in counts if c]
        kept = [w for w, c in zip(weights, counts, strict=True) if c]
        assert sequence_weights(some, aggregation) == kept


@given(
    gaps=st.lists(st.floats(-100, 100), min_size=1, max_size=8),
    cap=st.floats(0.5, 10),
)
def test_staleness_weights_are_truncated_ratios_without_gradient(gaps, cap) -> None:
    old = torch.tensor(gaps, dtype=torch.float64, requires_grad=True)
    weights = staleness_weights(old, torch.zeros_like(old), cap)
    assert not weights.requires_grad
    for gap, weight in zip(gaps, weights.tolist(), strict=True):
        assert weight == pytest.approx(min(cap, math.exp(max(-20.0, min(20.0, gap)))))


def test_an_on_policy_token_weighs_exactly_one() -> None:
    logprobs = -torch.rand(100)
    assert torch.equal(staleness_weights(logprobs, logprobs.clone(), 2.0), torch.ones(100))
