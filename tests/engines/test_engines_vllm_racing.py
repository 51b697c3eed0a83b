"""Races on a device: the noise, the winners and the refusals are those of the assignment."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.assignment import gumbel, gumbel_argmax, gumbel_words
from prime_core.engines.vllm import noise
from prime_core.engines.vllm.racing import race
from prime_core.engines.vllm.slots import Slot


@given(
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=8),
    position=st.integers(0, 2**32 - 1),
    tokens=st.integers(1, 4000),
)
@settings(max_examples=60, deadline=None)
def test_noise_in_torch_is_that_of_the_assignment(
    seeds: list[int], position: int, tokens: int
) -> None:
    rows = np.array([*seeds, 0, 2**63 - 1], dtype=np.int64)
    positions = np.full(len(rows), position, dtype=np.int64)
    given_to = [torch.from_numpy(each) for each in (rows, positions)]
    words = gumbel_words(rows, positions, np.arange(tokens))
    assert noise.gumbel_words(*given_to, tokens).tolist() == words.tolist()
    expected = gumbel(rows, positions, np.arange(tokens))
    np.testing.assert_allclose(noise.gumbel_noise(*given_to, tokens).numpy(), expected, rtol=2e-7)


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


def test_a_batch_that_is_raced_in_parts_has_the_same_winners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = torch.Generator().manual_seed(0)
    logprobs = torch.randn((7, 50), generator=generator).log_softmax(dim=-1)
    numbers, greedy = torch.arange(7), torch.arange(7) == 3
    whole = noise.race_on_device(logprobs, numbers, numbers, greedy)
    monkeypatch.setattr(noise, "_TOKENS_AT_ONCE", 130)
    assert noise.race_on_device(logprobs, numbers, numbers, greedy).tolist() == whole.tolist()


def test_excluded_tokens_never_win_and_a_row_of_nan_shows() -> None:
    logprobs = torch.full((2, 40), -torch.inf)
    logprobs[0, 17] = -1.0
    logprobs[1] = torch.nan
    numbers = torch.arange(2)
    won = noise.race_on_device(logprobs, numbers, numbers, torch.zeros(2, dtype=torch.bool))
    assert int(won[0]) == 17
    assert logprobs[1, won[1]].isnan()


def test_equal_greedy_tokens_go_to_the_lowest() -> None:
    logprobs = torch.tensor([[-3.0, -1.0, -1.0, -2.0]])
    one = torch.ones(1, dtype=torch.int64)
    assert noise.race_on_device(logprobs, one, one, torch.tensor([True])).tolist() == [1]


def test_a_row_of_nan_leaves_the_others_their_races() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn((5, 50), generator=generator)
    slots = [Slot(str(row), row, 0, (1.0, 0.0)[row % 2], False, []) for row in range(5)]
    tokens, logprobs = race(logits, slots)
    broken = logits.clone()
    broken[1, 7], broken[2] = torch.nan, -torch.inf
    mine, others = race(broken, slots)
    assert others.isnan().tolist() == [False, True, True, False, False]
    for row in (0, 3, 4):
        assert (mine[row], others[row]) == (tokens[row], logprobs[row])
