"""Thresholds from measured noise, bounds on rates, and forgeries that must not pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from toploc_support import noisy, normal

from prime_core.toploc import ChunkVerdict, Thresholds, build_proofs, verify_proofs
from prime_core.toploc.forging import Forger
from prime_core.toploc.noise import (
    best,
    false_accepts,
    false_rejects,
    fit_thresholds,
    passing,
    upper_bound,
    worst,
)

PAPER = Thresholds()


def judged(honest: torch.Tensor, shown: torch.Tensor) -> Any:
    return verify_proofs(honest, build_proofs(shown), PAPER)


def outlying(seed: int, rows: int, channels: int = 4, spread: float = 0.5) -> torch.Tensor:
    """States of which a few channels are always large: what makes forging easy."""
    states = normal(seed, rows, 4096).float()
    states[:, :channels] = 24 + spread * normal(seed + 1, rows, channels).float()
    return states.bfloat16()


@pytest.mark.parametrize(
    ("count", "of", "bound"),
    [
        (0, 300, 0.00994),
        (0, 3000, 0.000998),
        (1, 100, 0.0466),
        (5, 100, 0.1023),
        (99, 100, 0.99949),
    ],
)
def test_bounds_are_clopper_pearsons(count: int, of: int, bound: float) -> None:
    assert upper_bound(count, of) == pytest.approx(bound, rel=2e-3)


def test_without_trials_nothing_is_known() -> None:
    assert upper_bound(0, 0) == 1.0
    assert upper_bound(7, 7) == 1.0


def test_fitted_thresholds_leave_honest_noise_room_and_shut_out_more() -> None:
    states = [normal(i, 64, 576) for i in range(4)]
    honest = [judged(each, noisy(each, 0.002, i)) for i, each in enumerate(states)]
    rough = [judged(each, noisy(each, 0.05, i)) for i, each in enumerate(states)]
    fitted = fit_thresholds(honest)
    assert fitted.exponent_mismatches < 38
    assert false_rejects(honest, fitted).chunks.count == 0
    assert false_accepts(rough, fitted).chunks.count == 0
    assert worst(honest).mantissa_mean * 2 <= fitted.mantissa_mean
    assert best(rough).mantissa_mean > fitted.mantissa_mean


def test_fitted_thresholds_are_never_wider_than_the_papers() -> None:
    wild = [judged(normal(0, 64, 576), normal(1, 64, 576))]
    assert fit_thresholds(wild) == PAPER
    assert false_rejects(wild, PAPER).sequences.count == 1


def test_a_sequence_is_accepted_only_whole() -> None:
    good = ChunkVerdict(0, 0, 0.0, 0.0, True)
    bad = ChunkVerdict(1, 100, 0.0, 0.0, False)
    odds = false_accepts([[good, bad], [good, good], [bad, bad]], PAPER)
    assert (odds.chunks.count, odds.chunks.of) == (3, 6)
    assert (odds.sequences.count, odds.sequences.of) == (1, 3)
    odds = false_rejects([[good, bad], [good, good], [bad, bad]], PAPER)
    assert (odds.chunks.count, odds.sequences.count) == (3, 2)
    assert "3 of 6 (<= " in str(odds.chunks)


def forgeries(observed: Any, target: torch.Tensor, thresholds: Thresholds) -> dict[str, Any]:
    forger = Forger(observed)
    rows = len(target)
    made = {"constant": forger.constant(rows), "channels": forger.channels(rows)}
    folded = forger.folded_channels(rows)
    if folded is not None:
        made["folded"] = folded
    return {name: [verify_proofs(target, data, thresholds)] for name, data in made.items()}


def test_forgeries_fail_where_no_channel_stands_out() -> None:
    observed = [normal(i, 64, 4096) for i in range(4)]
    assert passing(forgeries(observed, normal(9, 64, 4096), PAPER), PAPER) == {}


def test_forgeries_pass_the_papers_thresholds_where_few_channels_are_always_large() -> None:
    observed = [outlying(i, 64) for i in range(0, 8, 2)]
    found = passing(forgeries(observed, outlying(20, 64), PAPER), PAPER)
    assert found["constant"].sequences.count == 1
    assert found["channels"].sequences.count == 1


def test_fitted_thresholds_shut_such_forgeries_out() -> None:
    target = outlying(20, 64)
    honest = [judged(target, noisy(target, 0.002))]
    fitted = fit_thresholds(honest)
    observed = [outlying(i, 64) for i in range(0, 8, 2)]
    assert passing(forgeries(observed, target, PAPER), fitted) == {}


def test_folding_needs_a_multiple_of_the_width_close_to_the_prime() -> None:
    assert Forger([normal(0, 32, 3584)]).folded_channels(64) is not None
    assert Forger([normal(0, 32, 4096)]).folded_channels(64) is None
    assert Forger([normal(0, 32, 576)]).folded_channels(64) is None
