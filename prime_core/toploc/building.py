"""Builds commitments while a sequence is generated: one proof per 32 rows of hidden states.

Engines call `ProofBuilder.add` as rows come; a chunk's 128 points are chosen as soon as it's full
and its rows are dropped. Polynomials are made at the end, for many chunks at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from prime_core.api.errors import EngineError
from prime_core.toploc.field import POINTS, PRIME, interpolate
from prime_core.toploc.proof import INTERVAL, MIN_MODULUS, TOPK
from prime_core.toploc.selection import INFINITY, MAGNITUDE, Bits, bits_of, largest

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

# Chunks encoded together: their arrays of powers stay in a core's second-level cache.
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Points:
    """What one chunk commits to: flat indices [K], ascending, and the bf16 patterns there [K]."""

    indices: NDArray[np.int64]
    bits: Bits


def choose_points(chunk: Bits, topk: int = TOPK) -> Points:
    """The points of one chunk, [rows, hidden] patterns.

    Raises:
        EngineError: a chosen element is infinite or NaN; as those are the largest patterns, none in
            the chunk goes unseen.
    """
    flat = chunk.reshape(-1)
    indices = largest(flat, topk)
    bits = flat[indices]
    if ((bits & MAGNITUDE) >= INFINITY).any():
        raise EngineError(
            "final hidden states hold NaN or infinity",
            where="commitment",
            fix="use dtype float32, or another attention implementation",
        )
    return Points(indices, bits)


class ProofBuilder:
    """The commitments of one sequence; rows arrive in order, in any number at a time.

    Raises:
        EngineError: from `add` and `finish`, where rows aren't finite or change their width.
    """

    def __init__(self, *, interval: int = INTERVAL, topk: int = TOPK) -> None:
        assert interval >= 1, "a proof covers at least one row"
        assert 1 <= topk <= POINTS, f"a polynomial has at most {POINTS} points"
        self._interval = interval
        self._topk = topk
        self._chunk: Bits | None = None
        self._filled = 0
        self._points: list[Points] = []

    @property
    def rows(self) -> int:
        """Rows that were added."""
        return len(self._points) * self._interval + self._filled

    def add(self, rows: Tensor | NDArray[np.float32]) -> None:
        """Take rows [n, hidden]; anything but bf16 is rounded to it."""
        self.add_bits(bits_of(rows))

    def add_bits(self, rows: Bits) -> None:
        """Take rows as bf16 patterns [n, hidden]; they are copied."""
        if self._chunk is None:
            self._chunk = np.empty((self._interval, rows.shape[1]), dtype=np.uint16)
        if rows.ndim != 2 or rows.shape[1] != self._chunk.shape[1]:
            raise EngineError(
                f"rows of shape {rows.shape} after rows of width {self._chunk.shape[1]}",
                where="commitment",
                fix="use one builder a sequence",
            )
        while len(rows):
            taken = min(len(rows), self._interval - self._filled)
            if taken == self._interval:
                self._points.append(choose_points(rows[:taken], self._topk))
            else:
                self._chunk[self._filled : self._filled + taken] = rows[:taken]
                self._filled += taken
                if self._filled == self._interval:
                    self._points.append(choose_points(self._chunk, self._topk))
                    self._filled = 0
            rows = rows[taken:]

    def points(self) -> list[Points]:
        """Points of all chunks, a last short one included."""
        if self._chunk is None or not self._filled:
            return list(self._points)
        return [*self._points, choose_points(self._chunk[: self._filled], self._topk)]

    def finish(self) -> bytes:
        """The proofs of all rows so far, ceil(rows / interval) times 258 bytes."""
        return encode(self.points())


def build_proofs(hidden: Tensor | NDArray[np.float32]) -> bytes:
    """The proofs of one sequence's hidden states [N, hidden], ceil(N / 32) times 258 bytes.

    Raises:
        EngineError: a state isn't finite.
    """
    builder = ProofBuilder()
    builder.add(hidden)
    return builder.finish()


def finish_all(builders: Sequence[ProofBuilder]) -> list[bytes]:
    """`finish` of each; their chunks are encoded together, which is faster for short sequences."""
    parts = [builder.points() for builder in builders]
    data = encode([points for part in parts for points in part])
    ends = np.cumsum([0, *map(len, parts)]) * (2 + 2 * POINTS)
    return [data[start:end] for start, end in pairwise(ends)]


def encode(points: Sequence[Points]) -> bytes:
    """The proofs through these points, 258 bytes each.

    A chunk of fewer than 128 points has zeros for the coefficients that it doesn't need.
    """
    words = np.empty((len(points), 1 + POINTS), dtype=">u2")
    for start in range(0, len(points), _BATCH):
        batch = points[start : start + _BATCH]
        moduli = np.array([choose_modulus(each.indices) for each in batch])
        x_CK, used_CK = padded([each.indices for each in batch])
        y_CK, _ = padded([each.bits for each in batch])
        words[start : start + len(batch), 0] = moduli
        words[start : start + len(batch), 1:] = interpolate(x_CK % moduli[:, None], y_CK, used_CK)
    return words.tobytes()


def padded(
    rows: Sequence[NDArray[np.integer]],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of at most 128 numbers as [C, 128], zeros behind them, and where they stand."""
    values: NDArray[np.int64] = np.zeros((len(rows), POINTS), dtype=np.int64)
    used = np.zeros((len(rows), POINTS), dtype=np.bool_)
    for index, row in enumerate(rows):
        values[index, : len(row)] = row
        used[index, : len(row)] = True
    return values, used


def choose_modulus(indices: NDArray[np.int64]) -> int:
    """The largest modulus up to the prime that keeps the indices apart.

    About one modulus in eight fails for indices all over a chunk of 131,072 elements or more, so
    that a thousand tries never run out.

    Raises:
        EngineError: none keeps them apart.
    """
    if indices.size == 0 or indices[-1] < PRIME:
        return PRIME
    for modulus in range(PRIME, MIN_MODULUS - 1, -1):
        if distinct(indices, modulus):
            return modulus
    raise EngineError(
        "no modulus keeps the indices of the largest elements apart",
        where="commitment",
        fix="commit to fewer elements (topk)",
    )


def distinct(indices: NDArray[np.int64], modulus: int) -> bool:
    """Whether no two indices are equal modulo this."""
    residues = np.sort(indices % modulus)
    return bool((residues[1:] != residues[:-1]).all())
