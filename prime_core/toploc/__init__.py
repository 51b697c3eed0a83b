"""Activation commitments (TOPLOC, arXiv 2501.16007): built by engines, judged by validators.

Byte-compatible with the public `toploc` library 0.1.6, without depending on it. What a proof can
and can't show stands in docs/explanation/trust.md.
"""

from prime_core.toploc.building import ProofBuilder, build_proofs, finish_all
from prime_core.toploc.proof import INTERVAL, PROOF_BYTES, TOPK, Proof, ProofError, parse_proofs
from prime_core.toploc.sampling import race_gaps
from prime_core.toploc.verifying import (
    NO_AGREEMENT,
    ChunkVerdict,
    Thresholds,
    verify_batch,
    verify_proofs,
)

__all__ = [
    "INTERVAL",
    "NO_AGREEMENT",
    "PROOF_BYTES",
    "TOPK",
    "ChunkVerdict",
    "Proof",
    "ProofBuilder",
    "ProofError",
    "Thresholds",
    "build_proofs",
    "finish_all",
    "parse_proofs",
    "race_gaps",
    "verify_batch",
    "verify_proofs",
]
