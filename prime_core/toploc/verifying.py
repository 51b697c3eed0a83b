"""Judges commitments by hidden states of one's own: does the proof tell what this model computes?

Called by validators with the rows of one prefill of the submitted tokens. Bad bytes raise
`ProofError`; everything else that a node can send ends as a verdict on each chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prime_core.toploc.building import distinct, padded
from prime_core.toploc.field import PRIME, evaluate
from prime_core.toploc.proof import INTERVAL, TOPK, Proof, ProofError, parse_proofs
from prime_core.toploc.selection import INFINITY, MAGNITUDE, Bits, bits_of, largest

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

NO_AGREEMENT = 2.0**64  # mean and median where no exponent agrees; the public library's value
_MANTISSA_BITS = 7
_MANTISSA = 0x7F
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How far an honest chunk may be off; defaults are those of the TOPLOC paper's own code.

    Attributes:
        exponent_mismatches: of 128 points; chunks with fewer points are held to the same share.
        mantissa_mean: mean difference of the 7-bit mantissas where exponents agree.
        mantissa_median: its median.
    """

    exponent_mismatches: int = 38
    mantissa_mean: float = 10.0
    mantissa_median: float = 8.0

    def allow(self, mismatches: int, mean: float, median: float, points: int = TOPK) -> bool:
        """Whether a chunk with these numbers, of so many points, is accepted."""
        return (
            mismatches * TOPK <= self.exponent_mismatches * points
            and mean <= self.mantissa_mean
            and median <= self.mantissa_median
        )


@dataclass(frozen=True, slots=True)
class ChunkVerdict:
    """One chunk's agreement with the verifier's hidden states.

    Attributes:
        chunk: its index in the sequence.
        exponent_mismatches: points whose sign or exponent differs. (The public library ignores the
            sign; an honest element that large can't change it.)
        mantissa_mean, mantissa_median: differences where they agree; 2**64 where none does. The
            median of an even number is the upper one, as in the library's C++ path.
        accepted: all within the thresholds.
        points: elements that were compared, 128 but in chunks of fewer elements.
    """

    chunk: int
    exponent_mismatches: int
    mantissa_mean: float
    mantissa_median: float
    accepted: bool
    points: int = TOPK


def verify_proofs(
    hidden: Tensor | NDArray[np.float32], data: bytes, thresholds: Thresholds
) -> tuple[ChunkVerdict, ...]:
    """Judge the proofs of one sequence.

    Args:
        hidden: [N, hidden] by the verifier's own model; what isn't bf16 is rounded to it.
        data: the node's proofs.

    Returns:
        One verdict per 32 rows. Where the verifier's own states aren't finite the chunk is refused:
        an honest node can't have sampled from them.

    Raises:
        ProofError: the bytes aren't proofs of N rows.
    """
    return verify_batch([hidden], [data], thresholds)[0]


def verify_batch(
    hiddens: Sequence[Tensor | NDArray[np.float32]],
    proofs: Sequence[bytes],
    thresholds: Thresholds,
) -> list[tuple[ChunkVerdict, ...]]:
    """`verify_proofs` of many sequences, their chunks evaluated together.

    Raises:
        ProofError: of the first sequence whose bytes are bad; `where` names its index.
    """
    chunks: list[Bits] = []
    parsed: list[Proof] = []
    counts: list[int] = []
    for index, (hidden, data) in enumerate(zip(hiddens, proofs, strict=True)):
        rows = bits_of(hidden)
        own = _parse(data, rows, index)
        chunks += [rows[start : start + INTERVAL] for start in range(0, len(rows), INTERVAL)]
        parsed += own
        counts.append(len(own))
    measures: list[_Measure] = []
    for start in range(0, len(chunks), _BATCH):
        here = slice(start, start + _BATCH)
        measures += _measure(chunks[here], parsed[here])
    judged = iter(measures)
    return [
        tuple(next(judged).verdict(chunk, thresholds) for chunk in range(count)) for count in counts
    ]


@dataclass(frozen=True, slots=True)
class _Measure:
    mismatches: int
    mean: float
    median: float
    points: int

    def verdict(self, chunk: int, thresholds: Thresholds) -> ChunkVerdict:
        accepted = thresholds.allow(self.mismatches, self.mean, self.median, self.points)
        return ChunkVerdict(chunk, self.mismatches, self.mean, self.median, accepted, self.points)


def _parse(data: bytes, rows: Bits, index: int) -> tuple[Proof, ...]:
    try:
        proofs = parse_proofs(data, len(rows))
    except ProofError as error:
        raise ProofError(error.what, where=f"sequence {index}, {error.where}") from error
    for chunk, proof in enumerate(proofs):
        if proof.modulus != PRIME:
            bits = rows[chunk * INTERVAL : (chunk + 1) * INTERVAL].reshape(-1)
            needless = _needless_modulus(bits, proof.modulus)
            if needless:
                raise ProofError(
                    f"modulus {proof.modulus} where {needless} would do",
                    where=f"sequence {index}, proof {chunk}",
                )
    return proofs


def _needless_modulus(bits: Bits, modulus: int) -> int:
    """A larger modulus that any honest node's largest elements are distinct by; 0 without one.

    A node's 128 largest are surely among the verifier's 256 largest where it's honest. Where those
    stay apart a lower modulus says nothing, or folds rows onto each other for a forger.
    """
    indices = largest(bits, 2 * TOPK)
    return next((each for each in range(PRIME, modulus, -1) if distinct(indices, each)), 0)


def _measure(chunks: Sequence[Bits], proofs: Sequence[Proof]) -> list[_Measure]:
    """Compare chunks [rows, hidden] with what their proofs say at the chunks' largest elements."""
    flat = [chunk.reshape(-1) for chunk in chunks]
    indices = [largest(bits, TOPK) for bits in flat]
    x_CK, used_CK = padded(indices)
    own_CK, _ = padded([bits[where] for bits, where in zip(flat, indices, strict=True)])
    moduli = np.array([proof.modulus for proof in proofs], dtype=np.int64)
    coefficients = np.stack([proof.coefficients for proof in proofs])
    told_CK = evaluate(coefficients, x_CK % moduli[:, None]).astype(np.int64)
    finite_C = np.asarray(((own_CK & int(MAGNITUDE)) < INFINITY).all(axis=1))
    agree_CK = used_CK & (told_CK >> _MANTISSA_BITS == own_CK >> _MANTISSA_BITS)
    agree_CK &= finite_C[:, None]
    off_CK = np.abs((told_CK & _MANTISSA) - (own_CK & _MANTISSA))
    agreed_C = agree_CK.sum(axis=1)
    # Points that disagree sort behind all others, so that the median is found by position.
    ordered_CK = np.sort(np.where(agree_CK, off_CK, _MANTISSA + 1), axis=1)
    median_C = ordered_CK[np.arange(len(flat)), np.minimum(agreed_C // 2, TOPK - 1)]
    total_C = np.where(agree_CK, off_CK, 0).sum(axis=1)
    measures = []
    for points, agreed, total, median in zip(
        used_CK.sum(axis=1).tolist(),
        agreed_C.tolist(),
        total_C.tolist(),
        median_C.tolist(),
        strict=True,
    ):
        mean, middle = (total / agreed, float(median)) if agreed else (NO_AGREEMENT, NO_AGREEMENT)
        measures.append(_Measure(points - agreed, mean, middle, points))
    return measures
