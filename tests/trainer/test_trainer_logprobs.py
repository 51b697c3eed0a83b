from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.trainer.logprobs import token_logprobs


def naive(hidden, head, targets, temperature):
    logp = torch.log_softmax(hidden @ head.T / temperature, dim=-1)
    return logp.gather(1, targets[:, None]).squeeze(1), -(logp.exp() * logp).sum(-1)


def problem(tokens: int, width: int, vocab: int, seed: int, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, width, generator=generator, dtype=dtype).requires_grad_()
    head = torch.randn(vocab, width, generator=generator, dtype=dtype).requires_grad_()
    return hidden, head, torch.randint(vocab, (tokens,), generator=generator)


@settings(max_examples=30, deadline=None)
@given(
    tokens=st.integers(0, 9),
    rows=st.integers(1, 10),
    temperature=st.sampled_from([0.6, 1.0, 1.7]),
    seed=st.integers(0, 99),
)
def test_chunked_equals_naive_in_values_and_gradients(tokens, rows, temperature, seed) -> None:
    hidden, head, targets = problem(tokens, 4, 7, seed)
    weights = torch.linspace(-1, 2, tokens, dtype=torch.float64)
    results = []
    for logprobs, entropies in (
        token_logprobs(hidden, head, targets, temperature, chunk_rows=rows),
        naive(hidden, head, targets, temperature),
    ):
        total = (logprobs * weights).sum() + (entropies * weights.flip(0)).sum()
        results.append((logprobs, entropies, *torch.autograd.grad(total, (hidden, head))))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_gradcheck_of_each_output() -> None:
    hidden, head, targets = problem(5, 3, 6, 1)
    for index in (0, 1):
        assert torch.autograd.gradcheck(
            lambda h, w, i=index: token_logprobs(h, w, targets, 0.7, chunk_rows=2)[i],
            (hidden, head),
        )


def test_entropy_alone_and_logprobs_alone_have_gradients() -> None:
    for index in (0, 1):
        hidden, head, targets = problem(4, 3, 5, 2)
        ours = torch.autograd.grad(
            token_logprobs(hidden, head, targets, 1.0)[index].sum(), (hidden, head)
        )
        theirs = torch.autograd.grad(naive(hidden, head, targets, 1.0)[index].sum(), (hidden, head))
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b)


def test_bfloat16_factors_give_float32_results_and_bfloat16_gradients() -> None:
    hidden, head, targets = problem(6, 8, 11, 3, torch.bfloat16)
    logprobs, entropies = token_logprobs(hidden, head, targets, 1.0)
    assert logprobs.dtype == entropies.dtype == torch.float32
    (logprobs.sum() + entropies.sum()).backward()
    assert hidden.grad is not None
    assert hidden.grad.dtype == head.grad.dtype == torch.bfloat16


def test_logits_beyond_float32_exp_stay_finite() -> None:
    hidden = torch.full((2, 1), 1e4).requires_grad_()
    head = torch.tensor([[1.0], [-1.0], [0.5]])
    logprobs, entropies = token_logprobs(hidden, head, torch.tensor([0, 1]), 1.0)
    assert logprobs.tolist() == [0.0, -2e4]
    assert entropies.abs().max() < 1e-2
    logprobs.sum().backward()
    assert hidden.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_divides_the_logits(temperature: float) -> None:
    hidden, head, targets = problem(3, 4, 5, 4)
    ours, _ = token_logprobs(hidden, head, targets, temperature)
    scaled, _ = token_logprobs(hidden / temperature, head, targets, 1.0)
    torch.testing.assert_close(ours, scaled)
