"""Verdicts: honest rounding passes, other states don't, and the numbers mean what they say."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
import torch
from toploc_support import noisy, normal, tensor

from prime_core.toploc import (
    NO_AGREEMENT,
    ProofError,
    Thresholds,
    build_proofs,
    verify_batch,
    verify_proofs,
)
from prime_core.toploc.selection import bits_of

PAPER = Thresholds()


def test_defaults_are_the_papers() -> None:
    assert (PAPER.exponent_mismatches, PAPER.mantissa_mean, PAPER.mantissa_median) == (38, 10, 8)


@pytest.mark.parametrize("hidden", [64, 576, 4096])
def test_honest_noise_is_accepted(hidden: int) -> None:
    states = normal(1, 70, hidden)
    verdicts = verify_proofs(noisy(states, 0.005), build_proofs(states), PAPER)
    assert [verdict.chunk for verdict in verdicts] == [0, 1, 2]
    assert all(verdict.accepted for verdict in verdicts)
    assert max(verdict.mantissa_mean for verdict in verdicts) > 0


@pytest.mark.parametrize("hidden", [64, 576, 4096])
def test_other_states_are_refused(hidden: int) -> None:
    verdicts = verify_proofs(normal(2, 70, hidden), build_proofs(normal(1, 70, hidden)), PAPER)
    assert not any(verdict.accepted for verdict in verdicts)


def test_shifted_rows_are_refused() -> None:
    states = normal(1, 65, 576)
    verdicts = verify_proofs(states[1:], build_proofs(states[:-1]), PAPER)
    assert not any(verdict.accepted for verdict in verdicts)


def test_only_the_chunk_that_differs_is_refused() -> None:
    states = normal(1, 96, 576)
    other = states.clone()
    other[40] = normal(7, 1, 576)[0] * 3
    verdicts = verify_proofs(other, build_proofs(states), PAPER)
    assert [verdict.accepted for verdict in verdicts] == [True, False, True]


def test_numbers_are_those_of_the_definition() -> None:
    states = tensor(np.arange(0x3F00, 0x3F00 + 128, dtype=np.uint16).reshape(4, 32))
    own = (np.arange(0x3F00, 0x3F00 + 128) + np.arange(128) % 4).astype(np.uint16).reshape(4, 32)
    told, seen = bits_of(states).reshape(-1), own.reshape(-1)
    same = (told >> 7) == (seen >> 7)
    errors = np.abs((told[same] & 127).astype(int) - (seen[same] & 127)).tolist()
    (verdict,) = verify_proofs(tensor(own), build_proofs(states), PAPER)
    assert verdict.exponent_mismatches == int((~same).sum())
    assert verdict.mantissa_mean == pytest.approx(sum(errors) / len(errors))
    assert verdict.mantissa_median == statistics.median_high(errors)


def test_without_agreement_nothing_is_close() -> None:
    states = normal(1, 32, 64).abs() + 1
    (verdict,) = verify_proofs(-states, build_proofs(states), PAPER)
    assert verdict.exponent_mismatches == 128
    assert verdict.mantissa_mean == verdict.mantissa_median == NO_AGREEMENT


def test_batches_judge_as_single_sequences_do() -> None:
    hiddens = [normal(i, 5 + 17 * i, 96) for i in range(7)]
    proofs = [build_proofs(noisy(hidden, 0.01, i)) for i, hidden in enumerate(hiddens)]
    alone = [verify_proofs(h, p, PAPER) for h, p in zip(hiddens, proofs, strict=True)]
    assert verify_batch(hiddens, proofs, PAPER) == alone
    assert verify_batch([], [], PAPER) == []


def test_a_batch_says_whose_bytes_are_bad() -> None:
    hiddens = [normal(i, 40, 96) for i in range(3)]
    proofs = [build_proofs(hidden) for hidden in hiddens]
    proofs[1] = proofs[1][:-1]
    with pytest.raises(ProofError, match="sequence 1"):
        verify_batch(hiddens, proofs, PAPER)


def test_a_verifiers_own_nan_accepts_nothing() -> None:
    states = normal(1, 64, 576)
    data = build_proofs(states)
    spoiled = states.clone()
    spoiled[40, 7] = float("nan")
    verdicts = verify_proofs(spoiled, data, PAPER)
    assert [verdict.accepted for verdict in verdicts] == [True, False]


def test_thresholds_hold_short_chunks_to_the_same_share() -> None:
    assert PAPER.allow(38, 0, 0, 128)
    assert not PAPER.allow(39, 0, 0, 128)
    assert PAPER.allow(9, 0, 0, 32)
    assert not PAPER.allow(10, 0, 0, 32)
    assert not PAPER.allow(0, 10.01, 0)
    assert not PAPER.allow(0, 0, 8.5)


def test_a_sequence_without_rows_has_nothing_to_judge() -> None:
    assert verify_proofs(torch.zeros((0, 64)), b"", PAPER) == ()
