"""Chunks of any shape from integer arithmetic alone, and a slow reference of the polynomial."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

PRIME = 65497


def scrambled(seed: int, rows: int, hidden: int) -> Any:
    """bf16 patterns [rows, hidden], every exponent up to 127 and both signs equally often."""
    word = np.arange(rows * hidden, dtype=np.uint64) * np.uint64(2654435761)
    word = (word + np.uint64(seed * 0x9E3779B1 & 0xFFFFFFFF)) & np.uint64(0xFFFFFFFF)
    for shift, factor in ((15, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        word = ((word ^ (word >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return ((word >> np.uint64(8)) & np.uint64(0xBFFF)).astype(np.uint16).reshape(rows, hidden)


def tensor(bits: Any) -> torch.Tensor:
    """Patterns as bf16."""
    return torch.from_numpy(bits.view(np.int16).copy()).view(torch.bfloat16)


def normal(seed: int, rows: int, hidden: int) -> torch.Tensor:
    """Random states."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((rows, hidden), generator=generator).bfloat16()


def noisy(hidden: torch.Tensor, relative: float, seed: int = 0) -> torch.Tensor:
    """States as another machine computes them."""
    noise = normal(seed + 1, *hidden.shape).float()
    return (hidden.float() * (1 + relative * noise)).bfloat16()


def horner(coefficients: list[int], x: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * x + coefficient) % PRIME
    return value


def golden_inputs(case: dict[str, Any]) -> torch.Tensor:
    return tensor(scrambled(case["seed"], case["rows"], case["hidden"]))
