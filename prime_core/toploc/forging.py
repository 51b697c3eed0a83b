"""Proofs made without running the model, from what is always true of its hidden states.

Calibration shows these to the verifier: where one passes, the thresholds protect nothing. Where a
few channels are always large, a forger may know which elements are committed to and nearly what
they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from prime_core.toploc.building import Points, encode
from prime_core.toploc.field import PRIME
from prime_core.toploc.proof import INTERVAL, MIN_MODULUS, TOPK, Proof, chunk_count, join_proofs
from prime_core.toploc.selection import Bits, bits_of, largest

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


class Forger:
    """Knows honest rows of other sequences, as anybody can who has ever run the model.

    Args:
        observed: hidden states of other sequences, [n, hidden] each; at least one row.
    """

    def __init__(self, observed: Sequence[Tensor | NDArray[np.float32]]) -> None:
        chunks = [
            rows[start : start + INTERVAL]
            for rows in map(bits_of, observed)
            for start in range(0, len(rows), INTERVAL)
        ]
        assert chunks, "a forger has seen something"
        self._hidden = chunks[0].shape[1]
        tops = [largest(chunk, TOPK) for chunk in chunks]
        self._seen = np.concatenate([c.reshape(-1)[t] for c, t in zip(chunks, tops, strict=True)])
        columns = np.concatenate(tops) % self._hidden
        counts = np.bincount(columns, minlength=self._hidden)
        self._columns = np.argsort(-counts, kind="stable")
        self._values = np.zeros(self._hidden, dtype=np.uint16)
        for column in np.flatnonzero(counts):
            self._values[column] = _typical(self._seen[columns == column])

    def constant(self, rows: int) -> bytes:
        """Every element is said to hold the one most typical value."""
        coefficients = np.zeros(TOPK, dtype=np.uint16)
        coefficients[0] = _typical(self._seen)
        return join_proofs([Proof(PRIME, coefficients)] * chunk_count(rows))

    def channels(self, rows: int) -> bytes:
        """The channels that are largest most often hold their typical values in all rows."""
        return encode(
            [
                self._largest_channels(min(INTERVAL, rows - start))
                for start in range(0, rows, INTERVAL)
            ]
        )

    def folded_channels(self, rows: int) -> bytes | None:
        """As `channels`, with a modulus that is a multiple of the hidden width, so that one point
        speaks for several rows and more channels can be told; None where there is no such modulus.
        """
        fold = PRIME // self._hidden
        if fold * self._hidden < MIN_MODULUS or fold >= INTERVAL or rows % INTERVAL:
            return None
        proof = encode([self._largest_channels(fold)])
        modulus: bytes = (fold * self._hidden).to_bytes(2, "big")
        return (modulus + proof[2:]) * chunk_count(rows)

    def _largest_channels(self, rows: int) -> Points:
        """128 points in `rows` rows: as many channels in all of them as there is room for."""
        place = np.arange(min(TOPK, rows * self._hidden))
        row, column = place % rows, self._columns[place // rows]
        order = np.argsort(row * self._hidden + column)
        return Points((row * self._hidden + column)[order], self._values[column][order])


def _typical(bits: Bits) -> np.uint16:
    """The most frequent sign and exponent, with the median mantissa that goes with it."""
    heads = bits >> np.uint16(7)
    head = np.bincount(heads).argmax()
    mantissas = np.sort(bits[heads == head] & np.uint16(0x7F))
    return np.uint16((int(head) << 7) | int(mantissas[len(mantissas) // 2]))
