"""Which elements of a chunk of hidden states are committed to: the largest by magnitude.

Called by `building` and `verifying`, so that both sides choose by one rule. A magnitude is compared
as the 15 low bits of its bf16 pattern, which order finite numbers as their absolute values do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Bits: TypeAlias = NDArray[np.uint16]

MAGNITUDE = np.uint16(0x7FFF)
INFINITY = 0x7F80  # magnitudes from here on are infinity and NaN
_COLUMNS = 2048  # enough column maxima for a bound on the 128th largest that lets little through


def bits_of(rows: Tensor | NDArray[np.float32]) -> Bits:
    """bf16 patterns of rows, same shape; other floats are rounded to nearest even first.

    Args:
        rows: a tensor on any device, or a numpy array (as `Prefill.hidden_states`).
    """
    import torch

    tensor = torch.from_numpy(rows) if isinstance(rows, np.ndarray) else rows.detach()
    assert tensor.is_floating_point(), f"hidden states are floats, not {tensor.dtype}"
    tensor = tensor.to("cpu", torch.bfloat16).contiguous()
    bits: Bits = tensor.view(torch.int16).numpy().view(np.uint16)
    return bits


def largest(bits: Bits, count: int) -> NDArray[np.int64]:
    """Flat indices, ascending, of the `count` largest magnitudes of a chunk.

    Ties go to the lower index. (`torch.topk` promises no order among equals; where several elements
    share the last magnitude that has a place, the public library may choose others of them.)
    All indices where the chunk holds no more than `count` elements.
    """
    magnitudes = bits.reshape(-1) & MAGNITUDE
    size = magnitudes.size
    if size <= count:
        return np.arange(size)
    candidates: NDArray[np.int64] = np.flatnonzero(magnitudes >= _bound(magnitudes, count))
    values = magnitudes[candidates]
    if candidates.size == count:
        return candidates
    last = np.partition(values, values.size - count)[values.size - count]
    taken = values > last
    ties = np.flatnonzero(values == last)[: count - np.count_nonzero(taken)]
    taken[ties] = True
    chosen: NDArray[np.int64] = candidates[taken]
    return chosen


def _bound(magnitudes: Bits, count: int) -> np.uint16:
    """A magnitude that at least `count` elements reach: `count` columns hold one that does."""
    fold = max(1, magnitudes.size // max(_COLUMNS, 4 * count))
    columns = magnitudes.size // fold
    maxima = magnitudes[: fold * columns].reshape(fold, columns).max(axis=0)
    bound: np.uint16 = np.partition(maxima, columns - count)[columns - count]
    return bound
