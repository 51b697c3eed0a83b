"""No crafted proof crashes, hangs or passes. The T numbers are failures of the public library."""

from __future__ import annotations

import random

import numpy as np
import pytest
from toploc_support import noisy, normal

from prime_core.toploc import (
    PROOF_BYTES,
    ProofError,
    Thresholds,
    build_proofs,
    parse_proofs,
    verify_proofs,
)

PAPER = Thresholds()
STATES = normal(1, 70, 576)
HONEST = build_proofs(STATES)


def refused(data: bytes, rows: int = 70) -> None:
    with pytest.raises(ProofError):
        parse_proofs(data, rows)
    with pytest.raises(ProofError):
        verify_proofs(STATES[:rows], data, PAPER)


def with_modulus(modulus: int) -> bytes:
    return modulus.to_bytes(2, "big") + HONEST[2:]


@pytest.mark.parametrize("seed", [28, 32, 34])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_indices_are_reduced_by_the_proofs_modulus(seed: int, noise: float) -> None:
    """T1: honest chunks whose indices collide came out as mismatches."""
    states = normal(seed, 32, 5120)
    data = build_proofs(states)
    (proof,) = parse_proofs(data, 32)
    (verdict,) = verify_proofs(noisy(states, noise), data, PAPER)
    assert proof.modulus < 65497
    assert verdict.accepted
    assert verdict.exponent_mismatches == 0 or noise


@pytest.mark.parametrize("modulus", [0, 1, 2, 127, 576, 64472, 65498, 65535])
def test_moduli_out_of_range_are_refused(modulus: int) -> None:
    """T2: modulus 0 killed the process."""
    refused(with_modulus(modulus))


@pytest.mark.parametrize("modulus", [64473, 65496])
@pytest.mark.parametrize("hidden", [576, 4096])
def test_a_lower_modulus_than_a_chunk_needs_is_refused(modulus: int, hidden: int) -> None:
    states = normal(1, 32, hidden)
    data = modulus.to_bytes(2, "big") + build_proofs(states)[2:]
    assert parse_proofs(data, 32)
    with pytest.raises(ProofError, match="65497 would do"):
        verify_proofs(states, data, PAPER)


@pytest.mark.parametrize("surplus", [PROOF_BYTES, 10 * PROOF_BYTES, 1, 2])
def test_surplus_bytes_are_refused(surplus: int) -> None:
    """T3: more proofs than chunks, or none of a proof's coefficients, killed the process."""
    refused(HONEST + HONEST[:1] * surplus)


@pytest.mark.parametrize("missing", [1, 2, 256, PROOF_BYTES, 2 * PROOF_BYTES, 3 * PROOF_BYTES])
def test_missing_bytes_are_refused(missing: int) -> None:
    """T4: proofs that weren't there counted as verified."""
    refused(HONEST[: len(HONEST) - missing])


def test_long_coefficient_lists_are_refused_at_once() -> None:
    """T5: a proof of 4 MB was read, and took seconds."""
    refused(HONEST[:2] + bytes(4 << 20))


def test_coefficients_beyond_the_field_are_refused() -> None:
    for value in (65497, 65535):
        refused(HONEST[:100] + value.to_bytes(2, "big") + HONEST[102:])


def test_flipped_signs_are_seen() -> None:
    """T6: the opposite of every state was a perfect proof."""
    assert not any(verdict.accepted for verdict in verify_proofs(-STATES, HONEST, PAPER))


def test_nan_is_neither_proof_nor_state() -> None:
    """T6: states of nothing but NaN were a perfect proof."""
    nan = (0x7FC0).to_bytes(2, "big") + bytes(254)
    data = (HONEST[:2] + nan) * 3
    assert not any(verdict.accepted for verdict in verify_proofs(STATES, data, PAPER))
    for value in (float("nan"), float("inf")):
        spoiled = STATES * 0 + value
        assert not any(verdict.accepted for verdict in verify_proofs(spoiled, data, PAPER))
        assert not any(verdict.accepted for verdict in verify_proofs(spoiled, HONEST, PAPER))


def test_null_proofs_are_refused() -> None:
    """T7: what the library built where it failed was a proof of nothing, with modulus 0."""
    refused(bytes(3 * PROOF_BYTES))
    zeros = (HONEST[:2] + bytes(256)) * 3
    assert not any(verdict.accepted for verdict in verify_proofs(STATES, zeros, PAPER))


@pytest.mark.parametrize("pattern", [0, 0x3F80, 0x4040, 0x4060, 0xC040, 0x7F7F, 0xFF7F])
def test_constant_polynomials_fail(pattern: int) -> None:
    """T10; where a few channels are always large they may pass: test_toploc_noise."""
    data = (HONEST[:2] + pattern.to_bytes(2, "big") + bytes(254)) * 3
    assert not any(verdict.accepted for verdict in verify_proofs(STATES, data, PAPER))


def test_chunks_in_another_order_fail() -> None:
    swapped = HONEST[PROOF_BYTES : 2 * PROOF_BYTES] + HONEST[:PROOF_BYTES] + HONEST[-PROOF_BYTES:]
    assert [v.accepted for v in verify_proofs(STATES, swapped, PAPER)] == [False, False, True]


def test_nonsense_counts_are_refused() -> None:
    with pytest.raises(ProofError):
        parse_proofs(b"", -1)
    assert parse_proofs(b"", 0) == ()


def mutated(rng: random.Random, honest: bytes) -> bytes:
    """A proof that differs from the honest one, and that no honest node can have made."""
    data = bytearray(honest)
    kind = rng.randrange(8)
    at = rng.randrange(len(data))
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        for _ in range(rng.randrange(1, 40)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 2:
        data = data[:at] + bytes(rng.randrange(1, 600)) + data[at:]
    elif kind == 3:
        del data[at : at + rng.randrange(1, 600)]
    elif kind == 4:
        data = bytearray(rng.randbytes(len(data)))
    elif kind == 5:
        data = bytearray(rng.randbytes(rng.randrange(0, 1200)))
    elif kind == 6:
        data[2:] = rng.randbytes(2) + bytes(len(data) - 4)
    else:
        other = rng.randrange(len(data))
        data[at], data[other] = data[other], data[at]
    return bytes(data)


def is_rounding(data: bytes, honest: bytes) -> bool:
    """Whether only the constant coefficient differs, by little: every value moves by as many units
    in the last place, as honest rounding may move it.
    """
    told, true = int.from_bytes(data[2:4], "big"), int.from_bytes(honest[2:4], "big")
    return data[:2] + data[4:] == honest[:2] + honest[4:] and abs(told - true) <= 16


def fuzz(count: int, seed: int) -> tuple[int, int]:
    """Mutated proofs of one chunk: how many were refused, and how many judged; none is accepted."""
    rng = random.Random(seed)
    chunks = [normal(each, 32, width) for each, width in enumerate((64, 576, 2112))]
    honest = [build_proofs(chunk) for chunk in chunks]
    bad_bytes = judged = 0
    for _ in range(count):
        which = rng.randrange(3)
        data = mutated(rng, honest[which])
        if is_rounding(data, honest[which]):
            continue
        try:
            (verdict,) = verify_proofs(chunks[which], data, PAPER)
        except ProofError:
            bad_bytes += 1
            continue
        judged += 1
        assert not verdict.accepted, (which, data.hex())
        assert 0 <= verdict.exponent_mismatches <= 128
        assert np.isfinite([verdict.mantissa_mean, verdict.mantissa_median]).all()
    return bad_bytes, judged


def test_mutated_proofs_are_never_accepted() -> None:
    bad_bytes, judged = fuzz(2000, seed=1)
    assert bad_bytes > 400
    assert judged > 400


@pytest.mark.slow
def test_a_million_mutated_proofs_are_never_accepted() -> None:
    bad_bytes, judged = fuzz(1_000_000, seed=2)
    assert bad_bytes + judged > 990_000
