"""The 258 bytes of one commitment, read strictly; the format of the public `toploc` library.

Written by `building`, read by `verifying` and by whoever checks a file. A proof that parses holds
an allowed modulus and 128 coefficients below the prime: nothing else gets past this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prime_core.api.errors import FormatError
from prime_core.toploc.field import POINTS, PRIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTERVAL = 32  # model tokens of one proof, TOPLOC section 4
TOPK = POINTS
PROOF_BYTES = 2 + 2 * TOPK
# Honest builders take the largest modulus that keeps 128 indices apart, one of the first few below
# the prime. Lower ones would serve a forger alone: a multiple of the hidden width folds rows onto
# each other, so that few numbers say all there is to know of the channels that are always large.
MIN_MODULUS = PRIME - 1024


class ProofError(FormatError):
    """Bytes that aren't the proofs of the stated rows; the one error that bad proofs raise."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One commitment.

    Attributes:
        modulus: flat indices of the chunk are reduced by it before the polynomial is evaluated; in
            [64473, 65497].
        coefficients: [128] uint16 below the prime, lowest power first; read-only.
    """

    modulus: int
    coefficients: NDArray[np.uint16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proof) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Modulus, then coefficients, each 16 bits, big-endian."""
        return self.modulus.to_bytes(2, "big") + self.coefficients.astype(">u2").tobytes()


def chunk_count(rows: int, interval: int = INTERVAL) -> int:
    """Proofs that so many rows need; the last may cover fewer rows."""
    return -(-rows // interval)


def parse_proofs(data: bytes, rows: int) -> tuple[Proof, ...]:
    """Read the proofs of `rows` hidden states, one per 32.

    Raises:
        ProofError: another length than rows need, a modulus outside [64473, 65497], or a
            coefficient that isn't below the prime.
    """
    if rows < 0:
        raise ProofError(f"{rows} rows can't have proofs", where="proofs")
    expected = chunk_count(rows) * PROOF_BYTES
    if len(data) != expected:
        raise ProofError(
            f"{len(data)} bytes of proofs where {rows} rows need {expected}", where="proofs"
        )
    words = np.frombuffer(data, dtype=">u2").astype(np.uint16).reshape(-1, PROOF_BYTES // 2)
    moduli, coefficients = words[:, 0], words[:, 1:]
    wrong = (moduli < MIN_MODULUS) | (moduli > PRIME)
    if wrong.any():
        chunk = int(wrong.argmax())
        raise ProofError(
            f"modulus {int(moduli[chunk])} isn't within {MIN_MODULUS}..{PRIME}",
            where=f"proof {chunk}",
        )
    beyond = (coefficients >= PRIME).any(axis=1)
    if beyond.any():
        raise ProofError(
            f"a coefficient isn't below {PRIME}", where=f"proof {int(beyond.argmax())}"
        )
    words.setflags(write=False)
    return tuple(
        Proof(int(modulus), row) for modulus, row in zip(moduli, words[:, 1:], strict=True)
    )


def join_proofs(proofs: Sequence[Proof]) -> bytes:
    """The bytes that `parse_proofs` reads."""
    return b"".join(proof.to_bytes() for proof in proofs)
