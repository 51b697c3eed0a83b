"""The race: candidates change no winner, rows are independent, greedy rows are defined."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from prime_core.api import EngineError
from prime_core.assignment import gumbel
from prime_core.engines.transformers.race import choose_tokens, race_margins

VOCAB = 49152


@pytest.mark.parametrize("spread", [2.0, 8.0, 30.0])
def test_candidates_win_exactly_the_whole_race(spread: float) -> None:
    generator = torch.Generator().manual_seed(int(spread))
    logprobs = (torch.randn((6, VOCAB), generator=generator) * spread).log_softmax(-1)
    for position in range(3):
        seeds = np.arange(6, dtype=np.int64) * 977 + 5
        positions = np.full(6, position, dtype=np.int64)
        noise = gumbel(seeds, positions, np.arange(VOCAB))
        expected = (logprobs.numpy().astype(np.float64) + noise).argmax(-1)
        chosen = choose_tokens(logprobs, seeds, positions, np.zeros(6, dtype=bool))
        assert chosen.tolist() == expected.tolist()


def test_rows_do_not_see_each_other() -> None:
    logprobs = torch.randn((5, VOCAB), generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    seeds = np.array([9, 8, 7, 6, 5], dtype=np.int64)
    positions = np.array([0, 3, 1, 4, 2], dtype=np.int64)
    plain = np.zeros(5, dtype=bool)
    together = choose_tokens(logprobs, seeds, positions, plain).tolist()
    for row in range(5):
        part = slice(row, row + 1)
        single = choose_tokens(logprobs[part], seeds[part], positions[part], plain[part])
        assert single.tolist() == together[part]


def test_greedy_rows_take_the_lowest_of_the_most_probable() -> None:
    logprobs = torch.zeros((2, 8)).log_softmax(-1)
    zeros = np.zeros(2, dtype=np.int64)
    assert choose_tokens(logprobs, zeros, zeros, np.array([True, False]))[0] == 0
    assert choose_tokens(logprobs, zeros, zeros, np.array([True, True])).tolist() == [0, 0]


def test_the_margin_is_the_lead_of_the_winner() -> None:
    logprobs = torch.zeros((1, 8)).log_softmax(-1)
    seeds, positions = np.array([3], dtype=np.int64), np.array([1], dtype=np.int64)
    best = np.sort(gumbel(seeds, positions, np.arange(8))[0].astype(np.float64))
    assert race_margins(logprobs, seeds, positions)[0] == pytest.approx(best[-1] - best[-2])


def test_logits_that_are_not_numbers_stop_the_engine() -> None:
    logprobs = torch.full((1, 8), torch.nan)
    zeros = np.zeros(1, dtype=np.int64)
    with pytest.raises(EngineError, match="NaN"):
        choose_tokens(logprobs, zeros, zeros, np.zeros(1, dtype=bool))
