"""Arithmetic of commitments in the prime field: interpolation and evaluation, many chunks at once.

Called by `building` and `verifying`. Everything is float64 holding integers: no intermediate value
reaches 2**47, so that every product, sum and matrix product is exact on any machine.

Legend: C chunks, K points (always `POINTS`, unused ones masked), A baby powers, G giant powers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PRIME = 65497  # the public library's MOD_N, the largest prime field of 16-bit values it needs
POINTS = 128
_BABY = 16  # x**(16 g + a) = giant[g] * baby[a]: 24 powers instead of 128


def interpolate(
    x_CK: NDArray[np.integer], y_CK: NDArray[np.integer], used_CK: NDArray[np.bool_]
) -> NDArray[np.uint16]:
    """Coefficients, lowest first, of the polynomials of least degree through the used points.

    Lagrange's formula with the master polynomial M(x) = prod(x - x_i): the coefficients are those
    of M convolved with the power sums of y_i / M'(x_i). Least degree makes them unique, so that any
    correct method gives the same bytes.

    Args:
        x_CK: [C, 128], distinct modulo the prime within a chunk.
        y_CK: [C, 128], in [0, prime).
        used_CK: [C, 128]; other points are ignored.

    Returns:
        [C, 128]; coefficients from the number of used points upward are 0.
    """
    x = np.where(used_CK, x_CK, 0).astype(np.float64)
    baby_CKA, giant_CKG = _powers(x)
    master_C = _master(x, used_CK)
    slopes = _reduce(master_C[:, 1:] * np.arange(1.0, POINTS + 1))
    slope_CK = _evaluate(slopes, baby_CKA, giant_CKG)
    inverse_CK = _inverses()[slope_CK.astype(np.int64)]
    weight_CK = _reduce(np.where(used_CK, y_CK, 0) * inverse_CK)
    scaled_CKG = _reduce(weight_CK[:, :, None] * giant_CKG)
    sums_C = _reduce(np.matmul(scaled_CKG.transpose(0, 2, 1), baby_CKA)).reshape(-1, POINTS)
    # c_j = sum over n of M_(j+1+n) * sums_n: a Hankel matrix of M's coefficients, zero beyond 128.
    padded = np.zeros((len(x), 2 * POINTS))
    padded[:, :POINTS] = master_C[:, 1:]
    hankel = np.lib.stride_tricks.sliding_window_view(padded, POINTS, axis=1)[:, :POINTS]
    return _reduce(np.einsum("cjn,cn->cj", hankel, sums_C)).astype(np.uint16)


def evaluate(coefficients_CK: NDArray[np.integer], x_CK: NDArray[np.integer]) -> NDArray[np.uint16]:
    """Values of one polynomial a chunk at that chunk's points, both [C, 128] below the prime."""
    baby_CKA, giant_CKG = _powers(x_CK.astype(np.float64))
    return _evaluate(coefficients_CK.astype(np.float64), baby_CKA, giant_CKG).astype(np.uint16)


def _reduce(values: Floats) -> Floats:
    """Values modulo the prime, in place: integers in [0, 2**47).

    The half keeps the quotient 2**-17 or more away from an integer, farther than its rounding.
    """
    quotient = values + 0.5
    quotient *= 1.0 / PRIME
    np.floor(quotient, out=quotient)
    quotient *= PRIME
    values -= quotient
    return values


def _powers(x_CK: Floats) -> tuple[Floats, Floats]:
    """x**0..x**15 as [C, K, 16], and x**0, x**16..x**112 as [C, K, 8]."""
    baby, top = _power_row(x_CK, _BABY)
    giant, _ = _power_row(top, POINTS // _BABY)
    return baby, giant


def _power_row(x_CK: Floats, count: int) -> tuple[Floats, Floats]:
    """x**0..x**(count - 1), [C, K, count], and x**count; count is a power of two."""
    row = np.ones((*x_CK.shape, count))
    step, have = x_CK, 1
    while have < count:
        row[:, :, have : 2 * have] = _reduce(row[:, :, :have] * step[:, :, None])
        step = _reduce(step * step)
        have *= 2
    return row, step


def _evaluate(coefficients_CK: Floats, baby_CKA: Floats, giant_CKG: Floats) -> Floats:
    blocks_CGA = coefficients_CK.reshape(len(coefficients_CK), POINTS // _BABY, _BABY)
    inner_CKG = _reduce(np.matmul(baby_CKA, blocks_CGA.transpose(0, 2, 1)))
    inner_CKG *= giant_CKG
    return _reduce(inner_CKG.sum(axis=2))


def _master(x_CK: Floats, used_CK: NDArray[np.bool_]) -> Floats:
    """Coefficients [C, 129] of the product of (x - x_i) over the used points, by halving."""
    product = np.empty((*x_CK.shape, 2))
    product[:, :, 0] = np.where(used_CK, _reduce(PRIME - x_CK), 1.0)
    product[:, :, 1] = used_CK
    while product.shape[1] > 1:
        left, right = product[:, 0::2], product[:, 1::2]
        degree = product.shape[2] - 1
        product = np.zeros((len(x_CK), left.shape[1], 2 * degree + 1))
        for index in range(degree + 1):
            product[:, :, index : index + degree + 1] += left[:, :, index, None] * right
        _reduce(product)
    return product[:, 0]


@cache
def _inverses() -> Floats:
    """1/a modulo the prime at index a, 0 at index 0; a**(p - 2) for all a at once."""
    base = np.arange(PRIME, dtype=np.float64)
    result = np.ones(PRIME)
    exponent = PRIME - 2
    while exponent:
        if exponent & 1:
            result = _reduce(result * base)
        base = _reduce(base * base)
        exponent >>= 1
    result[0] = 0.0
    return result
