"""The conventions of the public `toploc` library, for who has to talk to it.

Called by tests and by bridges to other validators; nothing else here uses it. The library hooks
decoding alone: N tokens give it N-1 rows, as the row that chose the first token comes from the
prefill, which it leaves out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prime_core.toploc.building import build_proofs
from prime_core.toploc.proof import PROOF_BYTES, ProofError
from prime_core.toploc.verifying import ChunkVerdict, Thresholds, verify_proofs

if TYPE_CHECKING:
    from torch import Tensor


def build_library_proofs(hidden: Tensor) -> list[str]:
    """What `toploc.build_proofs_base64(rows, 32, 128, skip_prefill=True)` gives.

    Args:
        hidden: [N, hidden], our N rows; the first is left out. One row gives no proof at all.
    """
    data = build_proofs(hidden[1:])
    return [
        base64.b64encode(data[start : start + PROOF_BYTES]).decode("ascii")
        for start in range(0, len(data), PROOF_BYTES)
    ]


def verify_library_proofs(
    hidden: Tensor, proofs: Sequence[str], thresholds: Thresholds
) -> tuple[ChunkVerdict, ...]:
    """Judge proofs that the library built.

    Args:
        hidden: [N, hidden], our N rows of the same tokens.

    Raises:
        ProofError: not base64, or not the proofs of N-1 rows.
    """
    parts = []
    for index, text in enumerate(proofs):
        try:
            parts.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError) as error:
            raise ProofError("not base64", where=f"proof {index}") from error
        if len(parts[-1]) != PROOF_BYTES:
            raise ProofError(
                f"{len(parts[-1])} bytes instead of {PROOF_BYTES}", where=f"proof {index}"
            )
    return verify_proofs(hidden[1:], b"".join(parts), thresholds)
