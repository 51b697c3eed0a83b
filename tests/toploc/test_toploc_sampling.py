"""Races replayed: honest tokens win, others lose, and rare tokens cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from prime_core.assignment.gumbel import gumbel_argmax, gumbel_at
from prime_core.toploc import race_gaps


def race(rows: int = 200, vocabulary: int = 3000, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal((rows, vocabulary)) * 3).astype(np.float32)
    seeds = rng.integers(0, 2**63, rows)
    positions = np.arange(rows)
    tokens = gumbel_argmax(logits, seeds, positions)

    def noise(row: Any, token: Any) -> Any:
        return gumbel_at(seeds[row], positions[row], token)

    return logits, tokens, noise


def test_tokens_that_won_have_no_gap() -> None:
    logits, tokens, noise = race()
    assert not race_gaps(logits, tokens, noise, span=21.0).any()
    assert not race_gaps(logits, tokens, noise).any()


def test_a_constant_in_the_logits_changes_nothing() -> None:
    logits, tokens, noise = race()
    shifted = logits + np.float32(2.0)
    assert race_gaps(shifted, tokens, noise).max() < 1e-5


def test_other_tokens_lose() -> None:
    logits, tokens, noise = race()
    other = (tokens + 1) % logits.shape[1]
    gaps = race_gaps(logits, other, noise)
    assert (gaps > 1.0).mean() > 0.95
    assert (gaps > 0).all()


def test_greedy_text_loses_its_races() -> None:
    logits, tokens, noise = race()
    greedy = logits.argmax(axis=1)
    gaps = race_gaps(logits, greedy, noise)
    assert ((gaps > 0) == (greedy != tokens)).all()
    assert (gaps > 0.1).mean() > 0.5


def test_a_shorter_span_only_shortens_gaps() -> None:
    logits, tokens, noise = race()
    other = np.roll(tokens, 1)
    whole = race_gaps(logits, other, noise, span=30.0)
    for span in (12.0, 6.0, 1.0):
        part = race_gaps(logits, other, noise, span=span)
        assert (part <= whole).all()
        whole = part


def test_a_gap_is_what_the_winner_had_more() -> None:
    logits = np.array([[1.0, 0.0, -50.0]], dtype=np.float32)

    def noise(row: Any, token: Any) -> Any:
        return np.array([0.5, 2.0, 0.0], dtype=np.float32)[token]

    assert race_gaps(logits, np.array([1]), noise).tolist() == [0.0]
    assert race_gaps(logits, np.array([0]), noise).tolist() == [0.5]
    assert race_gaps(logits, np.array([2]), noise).tolist() == [52.0]


def test_nan_wins_nothing() -> None:
    logits = np.zeros((3, 4), dtype=np.float32)
    logits[1, 2] = np.nan
    logits[2] = np.nan
    zero = race_gaps(logits, np.array([0, 0, 0]), lambda row, token: np.zeros(len(row), np.float32))
    assert zero.tolist() == [0.0, np.inf, np.inf]


def test_no_tokens_have_no_races() -> None:
    empty = np.zeros((0, 5), dtype=np.float32)
    assert race_gaps(empty, np.zeros(0, np.int64), lambda row, token: token).size == 0
