"""Weights that differ from the policy's as cheats would have them; calibration measures by them.

Called by `calibration`. The files are made in a directory of the caller's, and hold every tensor of
the original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from prime_core.api import PolicyFiles

if TYPE_CHECKING:
    from torch import Generator, Tensor

    Change: TypeAlias = Callable[[Tensor, Generator], Tensor]


def int8(weight: Tensor, generator: Generator) -> Tensor:
    """Matrices rounded to 8 bits, one scale a row; everything else as it is."""
    if weight.ndim != 2:
        return weight
    scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
    return (weight / scale).round() * scale


def off_by(share: float) -> Change:
    """Every weight off by this share of itself, as often up as down: another training step."""

    def change(weight: Tensor, generator: Generator) -> Tensor:
        import torch

        signs = torch.randint(0, 2, weight.shape, generator=generator) * 2 - 1
        return weight * (1 + share * signs)

    return change


def changed_policy(policy: PolicyFiles, change: Change, folder: Path) -> PolicyFiles:
    """The policy with changed weights, in float32, as files in `folder`."""
    import torch
    from safetensors.torch import load_file, save_file

    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(0)
    files = []
    for file in policy.weights:
        tensors = {
            name: change(tensor.float(), generator).contiguous()
            for name, tensor in load_file(file).items()
        }
        save_file(tensors, folder / file.name, metadata={"format": "pt"})
        files.append(folder / file.name)
    return replace(policy, weights=tuple(files))
