"""The tensor index of a safetensors file, as a policy header lists it.

`policy` reads it from the weights that it publishes, `cached` from those that were fetched; nothing
here needs torch or safetensors.
"""

from __future__ import annotations

import json
from pathlib import Path

from prime_core.api.errors import FormatError, StoreError
from prime_core.store.manifest import Tensor, parse_tensor

# safetensors itself refuses a longer header.
MAX_WEIGHTS_HEADER = 100_000_000


def tensor_index(weights: Path) -> tuple[tuple[Tensor, ...], int]:
    """The index of a safetensors file, sorted by name, and the file's size in bytes.

    Raises:
        FormatError: not a safetensors file.
        StoreError: it can't be read.
    """
    try:
        with weights.open("rb") as file:
            total = weights.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(MAX_WEIGHTS_HEADER, total - 8):
                raise _not_weights(weights)
            entries = json.loads(file.read(length))
    except OSError as error:
        raise StoreError(
            f"weights can't be read: {error.strerror}",
            where=str(weights),
            fix="write the version's weights before it's published",
        ) from error
    except (ValueError, RecursionError) as error:
        raise _not_weights(weights) from error
    if not isinstance(entries, dict):
        raise _not_weights(weights)
    entries.pop("__metadata__", None)
    tensors = []
    for name in sorted(entries):
        entry = entries[name]
        if not isinstance(entry, dict):
            raise _not_weights(weights)
        tensors.append(
            parse_tensor(
                {
                    "name": name,
                    "dtype": entry.get("dtype"),
                    "shape": entry.get("shape"),
                    "offsets": entry.get("data_offsets"),
                },
                total - 8 - length,
            )
        )
    return tuple(tensors), total


def _not_weights(path: Path) -> FormatError:
    return FormatError("not a safetensors file", where=str(path), fix="write it again")
