"""Weights are looked at before vLLM, which doesn't survive bad ones, is given them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from prime_core.api import EngineError
from prime_core.engines.vllm import checkpoints


def weights(path: Path, **tensors: torch.Tensor) -> Path:
    save_file(tensors, path)
    return path


def read(paths: Sequence[Path]) -> checkpoints.Shapes:
    return checkpoints.shapes(checkpoints.read_entries(paths))


def sample(paths: Sequence[Path]) -> str:
    return checkpoints.sample_digest(checkpoints.read_entries(paths))


def test_shapes_of_a_checkpoint(tmp_path: Path) -> None:
    path = weights(tmp_path / "a.safetensors", a=torch.zeros(2, 3), b=torch.zeros(4).bfloat16())
    assert read([path]) == {"a": ("F32", (2, 3)), "b": ("BF16", (4,))}


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    paths = [weights(tmp_path / f"{n}.safetensors", a=torch.zeros(2)) for n in "xy"]
    with pytest.raises(EngineError, match="two files"):
        read(paths)


@given(cut=st.integers(1, 90))
@settings(max_examples=30, deadline=None)
def test_a_checkpoint_that_was_cut_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = weights(tmp_path_factory.mktemp("cut") / "a.safetensors", a=torch.ones(7))
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - cut)])
    with pytest.raises(EngineError, match="damaged"):
        read([path])


def test_other_tensors_are_refused() -> None:
    model = {"a": ("F32", (2,)), "b": ("F32", (3,))}
    checkpoints.check_same(model, dict(model), "here")
    for other in ({"a": ("F32", (2,))}, model | {"b": ("F32", (4,))}, model | {"c": ("F32", (1,))}):
        with pytest.raises(EngineError, match="tensor"):
            checkpoints.check_same(model, other, "here")


def test_a_sample_sees_small_changes_everywhere(tmp_path: Path) -> None:
    values = torch.zeros(400_000)
    first = sample([weights(tmp_path / "a", a=values)])
    assert sample([weights(tmp_path / "b", a=values)]) == first
    values[::50] += 1e-3  # one weight in fifty
    assert sample([weights(tmp_path / "c", a=values)]) != first


def test_a_sample_sees_weights_and_not_their_files(tmp_path: Path) -> None:
    tensors = {name: torch.randn(300, 7) for name in ("b", "a", "c")}
    save_file(tensors, tmp_path / "whole")
    save_file({"a": tensors["a"]}, tmp_path / "one", metadata={"version": "1"})
    save_file({"c": tensors["c"], "b": tensors["b"]}, tmp_path / "two", metadata={"version": "2"})
    whole = sample([tmp_path / "whole"])
    assert sample([tmp_path / "two", tmp_path / "one"]) == whole
    save_file({"a": tensors["c"], "c": tensors["a"], "b": tensors["b"]}, tmp_path / "swapped")
    assert sample([tmp_path / "swapped"]) != whole


def first(header: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = header["a"]
    return entry


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no dtype": lambda header: first(header).pop("dtype"),
    "an unknown dtype": lambda header: first(header).update(dtype="F13"),
    "a dtype of another width": lambda header: first(header).update(dtype="F64"),
    "no shape": lambda header: first(header).pop("shape"),
    "a shape of text": lambda header: first(header).update(shape=["2", 3]),
    "a negative shape": lambda header: first(header).update(shape=[-2, -3]),
    "another shape": lambda header: first(header).update(shape=[2, 2]),
    "an offset of text": lambda header: first(header).update(data_offsets=["x", 24]),
    "an end of text": lambda header: first(header).update(data_offsets=[0, "x"]),
    "one offset": lambda header: first(header).update(data_offsets=[0]),
    "offsets backwards": lambda header: first(header).update(data_offsets=[24, 0]),
    "too short": lambda header: first(header).update(data_offsets=[0, 4]),
    "overlapping": lambda header: header["b"].update(data_offsets=first(header)["data_offsets"]),
    "a hole": lambda header: header.pop("b"),
    "no object": lambda header: header.update(a=[1, 2]),
    "metadata of numbers": lambda header: header.update(__metadata__={"a": 1}),
    "nothing": lambda header: header.clear(),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_contradicts_its_file_is_refused(tmp_path: Path, lie: str) -> None:
    path = weights(tmp_path / "w", a=torch.ones(2, 3), b=torch.ones(2, 3), c=torch.ones(5))
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    LIES[lie](header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    with pytest.raises(EngineError, match="damaged"):
        read([path])


@pytest.mark.parametrize("text", [b"[]", b'{"a":1,"a":2}', b"{" * 5000, b'"' + b"x" * 9])
def test_a_header_that_is_no_object_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "w"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(EngineError, match="damaged"):
        read([path])


def test_no_files_are_no_weights() -> None:
    with pytest.raises(EngineError, match="no weights"):
        read([])


def test_equal_tensors_are_told_from_others(tmp_path: Path) -> None:
    values = torch.randn(700_000)
    other = values.clone()
    other[-1] += 1
    shaped = values.view(2, -1).clone()
    path = weights(tmp_path / "w", a=values, b=values.clone(), c=other, d=shaped)
    found = checkpoints.read_entries([path])
    assert checkpoints.same_bytes(found["a"], found["b"])
    assert not checkpoints.same_bytes(found["a"], found["c"])
    assert not checkpoints.same_bytes(found["a"], found["d"])


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("F4", 3), ("F6_E2M3", 5), ("F6_E3M2", 5), ("F8_E4M3FNUZ", 6), ("F8_E5M2FNUZ", 6)],
)
def test_small_floats_have_their_width(tmp_path: Path, dtype: str, size: int) -> None:
    """Six of them; six of 6 bits don't fill their bytes, which no file has."""
    header = {"a": {"dtype": dtype, "shape": [6], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    path = tmp_path / "w"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    if size == 5:
        with pytest.raises(EngineError, match=f"which isn't {dtype}"):
            read([path])
    else:
        assert read([path]) == {"a": (dtype, (6,))}
