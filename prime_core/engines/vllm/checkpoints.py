"""Weights before vLLM sees them: it doesn't survive a checkpoint that doesn't fit.

Reads headers of safetensors files and a sample of their bytes; no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from prime_core.api import EngineError

_MAX_HEADER = 100 << 20
_METADATA = "__metadata__"
# Of every 256 KiB of a tensor the first 4 are read: one changed weight in a hundred shows.
_STRIDE, _SAMPLE = 256 << 10, 4 << 10

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


def shapes(weights: Sequence[Path]) -> Shapes:
    """Name -> (dtype, shape) of every tensor.

    Raises:
        EngineError: a file isn't whole, or a tensor stands in two.
    """
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for path in weights:
        for name, entry in _header(path)[0].items():
            if name in found:
                raise _bad(path, f"tensor {name} stands in two files")
            found[name] = (entry["dtype"], tuple(entry["shape"]))
    return found


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


def sample_digest(weights: Sequence[Path]) -> str:
    """SHA-256 (hex) over a sample of each tensor's bytes; it differs only where the weights do.

    How tensors are spread over files, and in which order, changes nothing: a learning rate of 0
    publishes the start model's weights in files of the trainer's making.
    """
    places: dict[str, tuple[Path, int, int]] = {}
    for path in weights:
        header, start = _header(path)
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            places[name] = (path, start + begin, start + end)
    digest = hashlib.sha256()
    with ExitStack() as stack:
        files = {path: stack.enter_context(path.open("rb")) for path in weights}
        for name, (path, begin, end) in sorted(places.items()):
            digest.update(name.encode())
            for offset in range(begin, end, _STRIDE):
                files[path].seek(offset)
                digest.update(files[path].read(min(_SAMPLE, end - offset)))
    return digest.hexdigest()


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The entries of a file's tensors, and where their bytes begin."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MAX_HEADER, size - 8):
                raise _bad(path, "it has no safetensors header")
            header = dict(json.loads(file.read(length)))
        header.pop(_METADATA, None)
        ends = [entry["data_offsets"][1] for entry in header.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise _bad(path, f"it can't be read: {error}") from error
    if not ends or max(ends) != size - 8 - length:
        raise _bad(
            path, f"it has {size} bytes, its header promises {8 + length + max(ends, default=0)}"
        )
    return header, 8 + length


def _bad(path: Path, what: str) -> EngineError:
    return EngineError(
        f"the weights are damaged: {what}", where=str(path), fix="fetch the version again"
    )
