"""A fingerprint of weights sees what changes in them, and where."""

from __future__ import annotations

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prime_core.engines.vllm.fingerprint import fingerprint


def of(tensor: torch.Tensor) -> str:
    return fingerprint([("a", tensor)])


@given(
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.uint8]),
    size=st.integers(2, 300),
    seed=st.integers(0, 1 << 20),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_two_values_that_change_places_are_seen(
    dtype: torch.dtype, size: int, seed: int, data: st.DataObject
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 250, (size,), generator=generator).to(dtype)
    first, second = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    assume(values[first] != values[second])
    other = values.clone()
    other[first], other[second] = values[second], values[first]
    assert of(other) != of(values)
    assert of(values.clone()) == of(values)


def test_values_far_apart_that_change_places_are_seen() -> None:
    """Words that differ in their upper bits alone, a power of two of words from each other."""
    for distance in (1 << 15, 1 << 16, (1 << 20) + (1 << 15), 1 << 21):
        values = torch.zeros(4 * (distance + 8), dtype=torch.bfloat16)
        values[3] = 1.0
        other = torch.zeros_like(values)
        other[3 + 4 * distance] = 1.0
        assert of(other) != of(values)


def test_the_last_bytes_count() -> None:
    values = torch.zeros(13, dtype=torch.bfloat16)
    other = values.clone()
    other[12] = 1.0
    assert of(other) != of(values)
    other[12], other[11] = 0.0, 1.0
    third = values.clone()
    third[10] = 1.0
    assert of(other) != of(third)


def test_names_shapes_and_dtypes_count() -> None:
    values = torch.zeros(4, 2)
    assert len({of(values), of(values.T), of(values.int()), fingerprint([("b", values)])}) == 4
    assert fingerprint([("a", values), ("b", values + 1)]) == fingerprint(
        [("b", values + 1), ("a", values)]
    )
    parts = {fingerprint([], [("a", each)]) for each in (of(values), of(values + 1))}
    assert len(parts) == 2
    assert of(torch.empty(0)) == of(torch.empty(0))
