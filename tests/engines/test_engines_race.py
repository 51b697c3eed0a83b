"""The race: candidates change no winner, ties and greedy rows are defined."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from prime_core.engines.transformers.race import choose_tokens, race_margins, whole_noise

VOCAB = 49152


@pytest.mark.parametrize("spread", [2.0, 8.0, 30.0])
def test_candidates_win_exactly_the_whole_race(spread: float) -> None:
    generator = torch.Generator().manual_seed(int(spread))
    logits = torch.randn((6, VOCAB), generator=generator) * spread
    logprobs = logits.log_softmax(-1)
    for position in range(4):
        seeds = np.arange(6, dtype=np.int64) * 977 + 5
        positions = np.full(6, position, dtype=np.int64)
        expected = (logprobs + whole_noise(seeds, positions, VOCAB)).argmax(-1)
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
    greedy = np.array([True, False])
    chosen = choose_tokens(logprobs, np.zeros(2, np.int64), np.zeros(2, np.int64), greedy)
    assert chosen[0] == 0


def test_the_margin_is_the_lead_of_the_winner() -> None:
    logprobs = torch.zeros((1, 8)).log_softmax(-1)
    seeds, positions = np.array([3], dtype=np.int64), np.array([1], dtype=np.int64)
    best = whole_noise(seeds, positions, 8)[0].sort(descending=True).values
    assert race_margins(logprobs, seeds, positions)[0] == pytest.approx(float(best[0] - best[1]))
