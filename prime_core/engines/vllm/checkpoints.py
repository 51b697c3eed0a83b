"""Weights before vLLM sees them: it doesn't survive a checkpoint that doesn't fit.

Reads headers of safetensors files and a sample of their bytes; no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prime_core.api import EngineError

_MAX_HEADER = 100 << 20
_METADATA = "__metadata__"
# Of every 256 KiB, the first 4 are read: an update that changes one weight in a hundred shows.
_STRIDE, _SAMPLE = 256 << 10, 4 << 10

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


def shapes(weights: Sequence[Path]) -> Shapes:
    """Name -> (dtype, shape) of every tensor.

    Raises:
        EngineError: a file isn't whole, or a tensor stands in two.
    """
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for path in weights:
        for name, entry in _header(path).items():
            if name == _METADATA:
                continue
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
    """SHA-256 (hex) over a sample of the bytes; it differs only where the weights do."""
    digest = hashlib.sha256()
    for path in weights:
        with path.open("rb") as file:
            size = path.stat().st_size
            for offset in range(0, size, _STRIDE):
                file.seek(offset)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def _header(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MAX_HEADER, size - 8):
                raise _bad(path, "it has no safetensors header")
            header = json.loads(file.read(length))
        ends = [
            entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise _bad(path, f"it can't be read: {error}") from error
    if not ends or max(ends) != size - 8 - length:
        raise _bad(
            path, f"it has {size} bytes, its header promises {8 + length + max(ends, default=0)}"
        )
    return dict(header)


def _bad(path: Path, what: str) -> EngineError:
    return EngineError(
        f"the weights are damaged: {what}", where=str(path), fix="fetch the version again"
    )
