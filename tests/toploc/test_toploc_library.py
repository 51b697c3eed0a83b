"""Against the public `toploc` library itself, where it's installed: bytes, and verdicts both ways.

Its wheels need the torch they were built with. Build it from its sdist into a folder of its own and
name that in PRIME_TOPLOC_LIBRARY:
`pip install --no-build-isolation --no-binary toploc --no-deps --target DIR toploc==0.1.6`
(setuptools, wheel and ninja must be there; it takes some minutes).
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from toploc_support import golden_inputs, noisy, normal

from prime_core.toploc import Thresholds, verify_proofs
from prime_core.toploc.building import ProofBuilder, encode
from prime_core.toploc.interop import build_library_proofs, verify_library_proofs

pytestmark = pytest.mark.slow
PAPER = Thresholds()
WIDTHS = [64, 576, 1024, 2048, 4096, 5120]
# Of 128 points, elements that share the last magnitude with a place: each side may choose others.
TIES = 6


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = os.environ.get("PRIME_TOPLOC_LIBRARY")
    if folder is None:
        pytest.skip("PRIME_TOPLOC_LIBRARY names no folder with the public library")
    monkeypatch.syspath_prepend(folder)
    return pytest.importorskip("toploc")


def library_proofs(library: Any, states: torch.Tensor) -> list[bytes]:
    proofs: list[bytes] = library.build_proofs_bytes(states, 32, 128, skip_prefill=True)
    return proofs


@pytest.mark.parametrize("hidden", WIDTHS)
def test_the_same_points_give_the_same_bytes(library: Any, hidden: int) -> None:
    below = 0
    for seed in range(60):
        builder = ProofBuilder()
        builder.add(normal(seed, 32, hidden))
        (points,) = builder.points()
        theirs = library.ProofPoly.from_points(points.indices.tolist(), points.bits.tolist())
        assert encode([points]) == theirs.to_bytes()
        below += theirs.modulus < 65497
    assert (below > 0) == (hidden >= 4096)


def test_golden_vectors_are_the_librarys(library: Any) -> None:
    path = Path(__file__).parents[1] / "vectors" / "toploc.json"
    for case in json.loads(path.read_text())["cases"]:
        theirs = library.build_proofs_base64(golden_inputs(case), 32, 128, skip_prefill=True)
        assert theirs == case["proofs"]


@pytest.mark.parametrize("hidden", WIDTHS)
@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_proofs_verify_in_both_directions(library: Any, hidden: int, noise: float) -> None:
    states = normal(hidden, 129, hidden)
    recomputed = noisy(states, noise)
    ours = build_library_proofs(states)
    theirs = library.build_proofs_base64(states[1:], 32, 128, skip_prefill=True)
    judged_by_us = verify_library_proofs(recomputed, theirs, PAPER)
    judged_by_them = library.verify_proofs_base64(recomputed[1:], ours, 32, 128, skip_prefill=True)
    assert len(ours) == len(theirs) == len(judged_by_us) == len(judged_by_them) == 4
    for us, them in zip(judged_by_us, judged_by_them, strict=True):
        assert us.accepted
        assert them.exp_mismatches <= 38
        assert them.mant_err_mean <= 10
        assert them.mant_err_median <= 8
        assert abs(us.exponent_mismatches - them.exp_mismatches) <= 2 * TIES
        if not noise:
            assert max(us.exponent_mismatches, them.exp_mismatches) <= TIES


@pytest.mark.parametrize("hidden", WIDTHS)
def test_both_see_the_same_numbers_in_a_proof(library: Any, hidden: int) -> None:
    """Verdicts are equal where neither ties nor a wrong sign (which we count) come into it."""
    compared = 0
    for seed in range(40):
        states = noisy(normal(seed, 32, hidden), 0.01)
        magnitudes = states.abs().reshape(-1).sort(descending=True).values
        if magnitudes[127] == magnitudes[128]:
            continue
        (proof,) = library_proofs(library, normal(seed, 32, hidden))
        (them,) = library.verify_proofs_bytes(states, [proof], 32, 128, skip_prefill=True)
        (us,) = verify_proofs(states, proof, PAPER)
        assert us.exponent_mismatches >= them.exp_mismatches
        if us.exponent_mismatches > them.exp_mismatches:
            continue
        assert us.mantissa_mean == pytest.approx(them.mant_err_mean, rel=1e-6)
        assert us.mantissa_median == them.mant_err_median
        compared += 1
    assert compared


@pytest.mark.parametrize("hidden", [576, 4096])
def test_others_states_fail_in_both_directions(library: Any, hidden: int) -> None:
    states, other = normal(1, 129, hidden), normal(2, 129, hidden)
    theirs = [base64.b64encode(proof).decode() for proof in library_proofs(library, states[1:])]
    assert not any(verdict.accepted for verdict in verify_library_proofs(other, theirs, PAPER))
    ours = build_library_proofs(states)
    for verdict in library.verify_proofs_base64(other[1:], ours, 32, 128, skip_prefill=True):
        assert verdict.exp_mismatches > 38
