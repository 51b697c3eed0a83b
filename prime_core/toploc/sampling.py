"""Replays seeded sampling (the idea of TOPLOC2): did each token win its Gumbel race?

Called by validators with logits of their own and the noise that the assignment fixes. A commitment
shows which model saw the text; this shows that the model also wrote it.

Legend: N tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Noise of single pairs: (rows [M], token ids [M]) -> [M] float32, for rows of the logits.
Noise: TypeAlias = "Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]"

# Tokens rarer than exp(-12) of the best one together win about one race in a few hundred.
SPAN = 12.0


def race_gaps(
    scaled_logits: NDArray[np.float32],
    chosen: NDArray[np.int64],
    noise: Noise,
    *,
    span: float = SPAN,
) -> NDArray[np.float64]:
    """Nats by which each chosen token lost its race; 0 where it won.

    Two machines' logits differ by rounding, so that an honest token may lose by a little: compare
    with a margin, see `prime-core toploc calibrate`. Tokens further than `span` below a row's best
    logit aren't looked at; that can shorten a gap and never makes one, so honest nodes lose
    nothing by it.

    Args:
        scaled_logits: [N, V], finite, logits (or log-probabilities) divided by the temperature;
            for another row a constant may be added.
        chosen: [N], token ids that a node says it drew.
        noise: the seeded noise of (row, token) pairs.
        span: nats.

    Returns:
        [N] float64, never negative; infinite in a row that holds NaN, where nothing can win.
    """
    if len(chosen) == 0:
        return np.zeros(0)
    rows_N = np.arange(len(chosen))
    own_N = scaled_logits[rows_N, chosen].astype(np.float64) + noise(rows_N, chosen)
    floor_N = scaled_logits.max(axis=1) - np.float32(span)
    candidates_NV = scaled_logits >= floor_N[:, None]
    candidates_NV[rows_N, chosen] = True  # a row of NaN has none otherwise
    rows, tokens = np.nonzero(candidates_NV)
    sums = scaled_logits[rows, tokens].astype(np.float64) + noise(rows, tokens)
    starts_N = np.searchsorted(rows, rows_N)
    gaps: NDArray[np.float64] = np.maximum.reduceat(sums, starts_N) - own_N
    return np.where(np.isnan(gaps) | np.isnan(floor_N), np.inf, np.maximum(gaps, 0.0))
