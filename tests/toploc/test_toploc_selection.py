"""Which elements are committed to: the largest magnitudes, ties to the lower index."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toploc_support import normal, scrambled

from prime_core.toploc.selection import bits_of, largest


def by_sorting(bits: np.ndarray, count: int) -> list[int]:
    magnitudes = (bits.reshape(-1) & 0x7FFF).astype(np.int64)
    order = np.lexsort((np.arange(magnitudes.size), -magnitudes))
    return sorted(order[:count].tolist())


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 32),
    hidden=st.sampled_from([1, 3, 64, 130, 576, 2048]),
    values=st.sampled_from([1, 2, 50, 0x8000]),
    count=st.sampled_from([1, 8, 128]),
)
@settings(max_examples=150, deadline=None)
def test_largest_is_a_sort_by_magnitude_then_index(
    seed: int, rows: int, hidden: int, values: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, values, (rows, hidden)).astype(np.uint16)
    bits |= (rng.integers(0, 2, bits.shape) << 15).astype(np.uint16)
    assert largest(bits, count).tolist() == by_sorting(bits, count)


@pytest.mark.parametrize("hidden", [576, 2048, 4096, 5120])
def test_whole_chunks_of_real_widths(hidden: int) -> None:
    bits = scrambled(1, 32, hidden)
    assert largest(bits, 128).tolist() == by_sorting(bits, 128)


def test_it_agrees_with_topk_on_magnitudes() -> None:
    hidden = normal(4, 32, 4096)
    ours = hidden.reshape(-1)[torch.from_numpy(largest(bits_of(hidden), 128))]
    theirs = hidden.reshape(-1).abs().topk(128).values
    assert sorted(ours.abs().tolist()) == sorted(theirs.tolist())


def test_a_sorted_or_constant_chunk_is_no_special_case() -> None:
    rising = np.arange(4096, dtype=np.uint16).reshape(32, 128)
    assert largest(rising, 128).tolist() == list(range(4096 - 128, 4096))
    assert largest(rising[::-1, ::-1], 128).tolist() == list(range(128))
    assert largest(np.zeros((32, 576), dtype=np.uint16), 128).tolist() == list(range(128))


def test_other_floats_are_rounded_to_nearest_even() -> None:
    values = torch.tensor([[1.0, 1.00390625, 1.01171875, -1.0]], dtype=torch.float32)
    assert bits_of(values).tolist() == [[0x3F80, 0x3F80, 0x3F82, 0xBF80]]
    assert bits_of(values.numpy()).tolist() == bits_of(values.bfloat16()).tolist()
    assert bits_of(values.double()).tolist() == bits_of(values).tolist()


def test_what_is_not_contiguous_is_read_as_it_looks() -> None:
    hidden = normal(2, 32, 64)
    assert bits_of(hidden.T).tolist() == bits_of(hidden.T.contiguous()).tolist()
