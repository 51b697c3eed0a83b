"""Building: the public library's bytes, and the same bytes however the rows arrive."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toploc_support import golden_inputs, normal, scrambled, tensor

from prime_core.api import EngineError
from prime_core.toploc import (
    PROOF_BYTES,
    ProofBuilder,
    Thresholds,
    build_proofs,
    finish_all,
    parse_proofs,
    verify_proofs,
)
from prime_core.toploc.building import choose_modulus
from prime_core.toploc.interop import build_library_proofs, verify_library_proofs
from prime_core.toploc.proof import join_proofs

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "toploc.json").read_text())


def cases() -> list[Any]:
    return [pytest.param(c, id=f"{c['rows']}x{c['hidden']}") for c in VECTORS["cases"]]


@pytest.mark.parametrize("case", cases())
def test_proofs_are_the_public_librarys_bytes(case: dict[str, Any]) -> None:
    expected = b"".join(map(base64.b64decode, case["proofs"]))
    assert build_proofs(golden_inputs(case)) == expected
    assert [proof.modulus for proof in parse_proofs(expected, case["rows"])] == case["moduli"]


@pytest.mark.parametrize("case", cases())
def test_golden_proofs_verify_without_any_difference(case: dict[str, Any]) -> None:
    data = b"".join(map(base64.b64decode, case["proofs"]))
    for verdict in verify_proofs(golden_inputs(case), data, Thresholds()):
        assert (verdict.exponent_mismatches, verdict.mantissa_mean) == (0, 0.0)
        assert verdict.mantissa_median == 0.0
        assert verdict.accepted


def test_golden_cases_hold_a_modulus_below_the_prime() -> None:
    assert min(min(case["moduli"]) for case in VECTORS["cases"]) < 65497


@given(cuts=st.lists(st.integers(0, 100), max_size=8), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_how_rows_arrive_changes_nothing(cuts: list[int], seed: int) -> None:
    hidden = normal(seed, 100, 48)
    builder = ProofBuilder()
    edges = [0, *sorted(cuts), 100]
    for start, end in pairwise(edges):
        builder.add(hidden[start:end])
    assert builder.rows == 100
    assert builder.finish() == build_proofs(hidden)
    assert builder.finish() == builder.finish()


def test_a_builder_goes_on_after_finish() -> None:
    hidden = normal(1, 70, 64)
    builder = ProofBuilder()
    builder.add(hidden[:40])
    assert builder.finish() == build_proofs(hidden[:40])
    builder.add(hidden[40:])
    assert builder.finish() == build_proofs(hidden)


def test_rows_are_copied() -> None:
    rows = normal(1, 20, 64)
    builder = ProofBuilder()
    builder.add(rows)
    expected = builder.finish()
    rows.zero_()
    assert builder.finish() == expected


@pytest.mark.parametrize(("rows", "proofs"), [(0, 0), (1, 1), (32, 1), (33, 2), (64, 2), (65, 3)])
def test_one_proof_for_each_started_interval(rows: int, proofs: int) -> None:
    assert len(build_proofs(normal(0, rows, 256))) == proofs * PROOF_BYTES


def test_chunks_smaller_than_128_elements_commit_to_all_of_them() -> None:
    hidden = normal(3, 2, 16)
    data = build_proofs(hidden)
    (proof,) = parse_proofs(data, 2)
    assert not proof.coefficients[32:].any()
    (verdict,) = verify_proofs(hidden, data, Thresholds())
    assert (verdict.exponent_mismatches, verdict.points, verdict.accepted) == (0, 32, True)
    (other,) = verify_proofs(normal(4, 2, 16), data, Thresholds())
    assert not other.accepted


def test_many_sequences_are_encoded_together() -> None:
    hiddens = [normal(i, 1 + 13 * i, 64) for i in range(9)]
    builders = [ProofBuilder() for _ in hiddens]
    for builder, hidden in zip(builders, hiddens, strict=True):
        builder.add(hidden)
    assert finish_all(builders) == [build_proofs(hidden) for hidden in hiddens]
    assert finish_all([]) == []


def test_proofs_survive_parsing() -> None:
    data = build_proofs(normal(0, 100, 64))
    proofs = parse_proofs(data, 100)
    assert join_proofs(proofs) == data
    assert proofs == parse_proofs(data, 100)
    assert len(set(proofs)) == 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("rows", [32, 5])
def test_states_that_are_not_finite_are_refused(value: float, rows: int) -> None:
    hidden = normal(0, rows, 576)
    hidden[rows - 1, 300] = value
    with pytest.raises(EngineError, match="NaN or infinity"):
        build_proofs(hidden)


def test_a_float32_beyond_bf16_is_infinite() -> None:
    hidden = torch.zeros((1, 8))
    hidden[0, 3] = 3.4e38
    with pytest.raises(EngineError, match="infinity"):
        build_proofs(hidden)


def test_rows_of_another_width_are_refused() -> None:
    builder = ProofBuilder()
    builder.add(normal(0, 3, 64))
    with pytest.raises(EngineError, match="width 64"):
        builder.add(normal(0, 3, 65))


def test_the_modulus_is_the_largest_that_keeps_indices_apart() -> None:
    assert choose_modulus(np.arange(128)) == 65497
    assert choose_modulus(np.array([0, 65496])) == 65497
    assert choose_modulus(np.array([0, 65497])) == 65496
    assert choose_modulus(np.array([0, 65496, 65497])) == 65495
    assert choose_modulus(np.array([0, 2 * 65497])) == 65496


def test_indices_that_no_modulus_separates_are_an_error() -> None:
    with pytest.raises(EngineError, match="no modulus"):
        choose_modulus(np.arange(0, 70000))


def test_interoperation_leaves_the_prefills_row_out() -> None:
    hidden = tensor(scrambled(5, 65, 576))
    proofs = build_library_proofs(hidden)
    assert [base64.b64decode(each) for each in proofs] == [
        build_proofs(hidden[1:33]),
        build_proofs(hidden[33:65]),
    ]
    verdicts = verify_library_proofs(hidden, proofs, Thresholds())
    assert [verdict.accepted for verdict in verdicts] == [True, True]
    assert build_library_proofs(hidden[:1]) == []
    assert verify_library_proofs(hidden[:1], [], Thresholds()) == ()
