"""Weights before vLLM sees them: it doesn't survive a checkpoint that doesn't fit.

Reads headers of safetensors files and a sample of their bytes. A header is believed only where the
file is laid out as the format demands: tensor behind tensor, each as long as it says.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from prime_core.api import EngineError
from prime_core.engines.expected import Expected
from prime_core.engines.strict_load import check_tensors, untied

_MAX_HEADER = 100 << 20
_METADATA = "__metadata__"
# Of every 256 KiB of a tensor the first 4 are read: one changed weight in a hundred shows.
_STRIDE, _SAMPLE = 256 << 10, 4 << 10
_BITS = {
    "F4": 4,
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor in a file; it lies from `begin` to `end` (exclusive)."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_entries(weights: Sequence[Path]) -> dict[str, Entry]:
    """Name -> entry of every tensor in the files.

    Raises:
        EngineError: there is none, a file isn't whole, its header contradicts it, or a tensor
            stands in two.
    """
    found: dict[str, Entry] = {}
    for path in weights:
        for name, entry in _entries(path).items():
            if name in found:
                raise _bad(path, f"tensor {name} stands in two files")
            found[name] = entry
    if not found:
        raise EngineError(
            "the policy has no weights", where="engine vllm", fix="fetch the version again"
        )
    return found


def shapes(entries: Mapping[str, Entry]) -> Shapes:
    """Name -> (dtype, shape)."""
    return {name: (entry.dtype, entry.shape) for name, entry in entries.items()}


def check_same(expected: Shapes, found: Shapes, where: str) -> None:
    """Refuse weights with other tensors than those that vLLM was started with.

    Raises:
        EngineError: names the first difference.
    """
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise EngineError(
                f"tensor {name} is {found.get(name, 'missing')}, the model has "
                f"{expected.get(name, 'no such tensor')}",
                where=where,
                fix="publish weights of the run's own model",
            )


def own_entries(
    expected: Expected, found: Mapping[str, Entry], dtype: str = "float32"
) -> dict[str, Entry]:
    """The entries that make up a model of this config, under the model's names.

    Left out are unused buffers, and tensors that repeat those that they are tied to: another
    version of the same model may have them or not.

    Args:
        dtype: that vLLM computes in.

    Raises:
        EngineError: tensors are missing, are none of the model's, have another shape, or differ
            from the ones that the config ties them to.
    """
    files = sorted({entry.path for entry in found.values()})
    named = {_own_name(expected, name): entry for name, entry in found.items()}
    if len(named) < len(found):
        raise _bad(files[0], f"a tensor stands there with and without {expected.prefix!r}")
    shapes = {name: entry.shape for name, entry in named.items()}
    check_tensors(dict(expected.shapes), shapes, dict(expected.tied), files)
    for name in sorted(expected.tied.keys() & named.keys()):
        one, other = named[name], named[expected.tied[name]]
        if not (same_bytes(one, other) or _same_values(one, other, dtype)):
            raise untied(name, expected.tied[name], one.path)
    return {
        name: entry
        for name, entry in named.items()
        if name in expected.shapes and name not in expected.tied
    }


def _own_name(expected: Expected, name: str) -> str:
    longer = expected.prefix + name
    return longer if name not in expected.shapes and longer in expected.shapes else name


def sample_digest(entries: Mapping[str, Entry]) -> str:
    """SHA-256 (hex) over a sample of each tensor's bytes; it differs only where the weights do.

    How tensors are spread over files, and in which order, changes nothing: a learning rate of 0
    publishes the start model's weights in files of the trainer's making.
    """
    digest = hashlib.sha256()
    with ExitStack() as stack:
        paths = {entry.path for entry in entries.values()}
        files = {path: stack.enter_context(path.open("rb")) for path in sorted(paths)}
        for name, entry in sorted(entries.items()):
            digest.update(name.encode())
            for offset in range(entry.begin, entry.end, _STRIDE):
                files[entry.path].seek(offset)
                digest.update(files[entry.path].read(min(_SAMPLE, entry.end - offset)))
    return digest.hexdigest()


def same_bytes(first: Entry, second: Entry) -> bool:
    """Whether two tensors are equal, bit for bit."""
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    with first.path.open("rb") as one, second.path.open("rb") as other:
        one.seek(first.begin)
        other.seek(second.begin)
        left = first.end - first.begin
        while left:
            part = one.read(min(left, 1 << 20))
            if not part or part != other.read(len(part)):
                return False
            left -= len(part)
    return True


def _same_values(first: Entry, second: Entry, dtype: str) -> bool:
    """Whether two tensors are equal to who computes in `dtype`."""
    import torch

    wanted = getattr(torch, dtype)
    floats = {
        "F64": torch.float64,
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
    }
    if first.shape != second.shape or not {first.dtype, second.dtype} <= floats.keys():
        return False
    values = []
    for entry in (first, second):
        with entry.path.open("rb") as file:
            file.seek(entry.begin)
            data = bytearray(file.read(entry.end - entry.begin))
        values.append(torch.frombuffer(data, dtype=floats[entry.dtype]).to(wanted))
    return torch.equal(*values)


def _entries(path: Path) -> dict[str, Entry]:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MAX_HEADER, size - 8):
                raise _bad(path, "it has no safetensors header")
            header = json.loads(file.read(length), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise _bad(path, f"it can't be read: {error}") from error
    if not isinstance(header, dict):
        raise _bad(path, "its header is no object")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or any(type(each) is not str for each in metadata.values()):
        raise _bad(path, "its metadata aren't strings")
    entries = {name: _entry(path, name, entry, 8 + length) for name, entry in header.items()}
    end = 8 + length
    for name, entry in sorted(entries.items(), key=lambda named: (named[1].begin, named[1].end)):
        if entry.begin != end:
            raise _bad(path, f"tensor {name} begins at byte {entry.begin}, not at {end}")
        end = entry.end
    if not entries or end != size:
        raise _bad(path, f"it has {size} bytes, its header promises {end}")
    return entries


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in its header")
    return found


def _entry(path: Path, name: str, found: Any, start: int) -> Entry:
    """One tensor's entry; `start` is where the bytes of the tensors begin."""
    entry = found if isinstance(found, dict) else {}
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise _bad(path, f"tensor {name} is of dtype {dtype!r}")
    if not (_are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2):
        raise _bad(path, f"tensor {name} has shape {shape!r} and lies at {offsets!r}")
    begin, end = offsets
    if 8 * (end - begin) != math.prod(shape) * _BITS[dtype]:
        raise _bad(path, f"tensor {name} has {end - begin} bytes, which isn't {dtype} of {shape}")
    return Entry(path, dtype, tuple(shape), start + begin, start + end)


def _are_sizes(found: Any) -> TypeGuard[list[int]]:
    """Whether it's a list of counts; True and False aren't any."""
    return isinstance(found, list) and all(type(each) is int and each >= 0 for each in found)


def _bad(path: Path, what: str) -> EngineError:
    return EngineError(
        f"the weights are damaged: {what}", where=str(path), fix="fetch the version again"
    )
