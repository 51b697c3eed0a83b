"""Races on a device: the noise, the winners and the refusals are those of the assignment."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.assignment import gumbel_argmax, gumbel_at, gumbel_words
from prime_core.engines.vllm import noise


@given(
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=40),
    position=st.integers(0, 2**32 - 1),
    token=st.integers(0, 2**18),
)
@settings(max_examples=60, deadline=None)
def test_noise_in_torch_is_that_of_the_assignment(
    seeds: list[int], position: int, token: int
) -> None:
    rows = np.array(seeds, dtype=np.int64)
    positions = np.full(len(seeds), position, dtype=np.int64)
    tokens = np.arange(token, token + len(seeds), dtype=np.int64)
    given_to = [torch.from_numpy(each) for each in (rows, positions, tokens)]
    words = gumbel_words(rows, positions, tokens[:, None])[:, 0]
    assert noise.gumbel_words(*given_to).tolist() == words.tolist()
    expected = gumbel_at(rows, positions, tokens)
    np.testing.assert_allclose(noise.gumbel_noise(*given_to).numpy(), expected, rtol=2e-7)


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 8),
    vocab=st.integers(2, 300),
    sharpness=st.sampled_from([0.1, 3.0, 30.0]),
)
@settings(max_examples=60, deadline=None)
def test_a_race_on_a_device_has_the_assignments_winner(
    seed: int, rows: int, vocab: int, sharpness: float
) -> None:
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(rows, vocab)).astype(np.float32) * sharpness)
    logprobs = logits.log_softmax(dim=-1)
    seeds, positions = rng.integers(0, 2**63 - 1, rows), rng.integers(0, 2**20, rows)
    greedy = torch.from_numpy(rng.random(rows) < 0.3)
    found = noise.race_on_device(
        logprobs, torch.from_numpy(seeds), torch.from_numpy(positions), greedy
    )
    raced = torch.from_numpy(gumbel_argmax(logprobs.numpy(), seeds, positions))
    assert found.tolist() == torch.where(greedy, logprobs.argmax(dim=-1), raced).tolist()


def test_equal_greedy_tokens_go_to_the_lowest() -> None:
    logprobs = torch.tensor([[-3.0, -1.0, -1.0, -2.0]])
    one = torch.ones(1, dtype=torch.int64)
    assert noise.race_on_device(logprobs, one, one, torch.tensor([True])).tolist() == [1]
