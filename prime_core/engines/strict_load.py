"""Strict weight loads: every expected tensor is in the files with its shape, and nothing else.

Called by engines when a policy version arrives. A refused load changes nothing, so that the old
weights stay whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.api import EngineError

# Buffers that older checkpoints hold, and that models compute for themselves.
_UNUSED = re.compile(r"\.(rotary_emb\.(inv_freq|cos_cached|sin_cached)|attn\.(masked_)?bias)$")


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What one strict weight load read: tensors in the files, and how many differ from before."""

    tensors: int
    changed: int


def parameter_count(files: Sequence[Path]) -> int:
    """Parameters in safetensors files, read from their headers."""
    from safetensors import safe_open

    count = 0
    for file in files:
        with safe_open(str(file), framework="np") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (safe_open isn't a mapping)
                count += math.prod(tensors.get_slice(name).get_shape())
    return count


def load_weights(model: Any, files: Sequence[Path]) -> LoadReport:
    """Copy every tensor of the files into the model, in place.

    Names and shapes are checked over all files before the first byte is copied, so that a refused
    load leaves the old weights whole. A tied output embedding may be absent from the files; where
    it is there, it must equal the input embedding.

    Raises:
        EngineError: missing, unexpected, doubled or misshaped tensors, or unreadable files.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    targets = dict(model.state_dict(keep_vars=False))
    tied = tied_names(model)
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        for file in files:
            with safe_open(str(file), framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 (safe_open isn't a mapping)
                    _refuse_doubled(name, shapes, file)
                    shapes[name] = tuple(tensors.get_slice(name).get_shape())
        check_tensors({name: tuple(t.shape) for name, t in targets.items()}, shapes, tied, files)
        changed = 0
        with torch.no_grad():
            for file in files:
                with safe_open(str(file), framework="pt") as tensors:
                    for name in tensors.keys():  # noqa: SIM118
                        if name not in targets:
                            continue  # unused
                        target = targets[name]
                        source = tensors.get_tensor(name).to(target.dtype)
                        if name not in tied:
                            changed += int(not torch.equal(source, target))
                            target.copy_(source)
            _check_tied(targets, shapes, tied, files)
    except (OSError, SafetensorError) as error:
        raise EngineError(
            f"weights can't be read: {error}", where=_names(files), fix="fetch the policy again"
        ) from error
    return LoadReport(tensors=len(shapes), changed=changed)


def is_unused(name: str) -> bool:
    """Whether a tensor that isn't the model's may be in its files all the same."""
    return _UNUSED.search(name) is not None


def untied(name: str, other: str, file: Path) -> EngineError:
    """The error of a tied tensor that differs from the other."""
    return EngineError(
        f"{name} differs from {other}, though the config ties them",
        where=str(file),
        fix="set tie_word_embeddings to false, or leave the tensor out",
    )


def tied_names(model: Any) -> dict[str, str]:
    """Tied parameters and the parameter each is tied to, or {} where nothing is tied."""
    if not getattr(model.config, "tie_word_embeddings", False):
        return {}
    return dict(getattr(model, "_tied_weights_keys", None) or {})


def _refuse_doubled(name: str, seen: dict[str, tuple[int, ...]], file: Path) -> None:
    if name in seen:
        raise EngineError(
            f"tensor {name} is in two files", where=str(file), fix="publish the policy again"
        )


def check_tensors(
    expected: dict[str, tuple[int, ...]],
    found: dict[str, tuple[int, ...]],
    tied: dict[str, str],
    files: Sequence[Path],
) -> None:
    """Refuse files with other tensors than those expected.

    Tied ones may be absent, and buffers that nobody reads there.

    Raises:
        EngineError: names the first of each kind.
    """
    missing = sorted(expected.keys() - found.keys() - tied.keys())
    extra = sorted(name for name in found.keys() - expected.keys() if not is_unused(name))
    wrong = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    problems = [
        *(f"{name} is missing{_stand_in(name, found, tied)}" for name in missing[:3]),
        *(f"{name} isn't part of the model" for name in extra[:3]),
        *(f"{name} is {found[name]}, not {expected[name]}" for name in wrong[:3]),
    ]
    if problems:
        count = len(missing) + len(extra) + len(wrong)
        raise EngineError(
            f"the weights don't fit the model ({count} tensors): {'; '.join(problems)}",
            where=_names(files),
            fix="use the weights and the config.json of one model",
        )


def _stand_in(name: str, found: dict[str, tuple[int, ...]], tied: dict[str, str]) -> str:
    """What to say where only the tensor that is tied to a missing one is there."""
    there = [each for each, other in tied.items() if other == name and each in found]
    return f" ({there[0]}, which the config ties to it, isn't read in its place)" if there else ""


def _check_tied(
    targets: dict[str, Any],
    found: dict[str, tuple[int, ...]],
    tied: dict[str, str],
    files: Sequence[Path],
) -> None:
    from safetensors import safe_open

    for name in tied.keys() & found.keys():
        for file in files:
            with safe_open(str(file), framework="pt") as tensors:
                if name not in tensors.keys():  # noqa: SIM118
                    continue
                source = tensors.get_tensor(name).to(targets[name].dtype)
                if not bool((source == targets[tied[name]]).all()):
                    raise untied(name, tied[name], file)


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(file) for file in files)
