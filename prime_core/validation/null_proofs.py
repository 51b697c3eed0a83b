"""Proofs that no honest node sends: others' proofs, and forgeries of three kinds.

Called by `calibration` with hidden states that the validator computed; each gives verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prime_core.api import EngineError
from prime_core.toploc import INTERVAL, ProofError, Thresholds, build_proofs, verify_batch
from prime_core.toploc.forging import Forger
from prime_core.toploc.noise import Sequences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAPER = Thresholds()


def replayed(states: Sequence[NDArray[np.float32]]) -> Sequences:
    """Every sequence with the proofs of the next one, over the rows that both have."""
    pairs = []
    for index, own in enumerate(states):
        other = (index + 1) % len(states)
        rows = min(len(own), len(states[other]))
        if rows and other != index:
            pairs.append((own[:rows], build_proofs(states[other][:rows])))
    return verify_batch([own for own, _ in pairs], [data for _, data in pairs], PAPER)


def forged(states: Sequence[NDArray[np.float32]]) -> dict[str, Sequences]:
    """Forgeries made from one half of the sequences, shown for the other half."""
    half = len(states) // 2
    known, shown = states[:half], states[half:]
    if not known:
        raise EngineError(
            "a forger needs sequences to learn from and others to try",
            where="calibration",
            fix="raise --sequences to at least 2",
        )
    forger = Forger(known)
    whole = [each[: len(each) // INTERVAL * INTERVAL] for each in shown if len(each) >= INTERVAL]
    kinds = {
        "constant polynomial": (shown, [forger.constant(len(each)) for each in shown]),
        "typical channels": (shown, [forger.channels(len(each)) for each in shown]),
    }
    folded = [forger.folded_channels(len(each)) for each in whole]
    if folded and folded[0] is not None:
        kinds["folded channels"] = (whole, [data for data in folded if data is not None])
    return {name: _judge_forged(rows, data) for name, (rows, data) in kinds.items()}


def _judge_forged(states: Sequence[NDArray[np.float32]], proofs: Sequence[bytes]) -> Sequences:
    """As `verify_batch`; proofs that are refused as bytes leave their sequence out."""
    judged = []
    for own, data in zip(states, proofs, strict=True):
        try:
            judged += verify_batch([own], [data], PAPER)
        except ProofError:
            judged.append(())
    return judged
