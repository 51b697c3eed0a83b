"""A fingerprint of a model's parameters as they are in memory, on any device.

Called by the worker extension after each load; needs torch alone. Invariant: it depends on every
byte and on its place. It tells whether a load did what it should, and isn't made to withstand
somebody who searches for collisions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch

# Odd constants of splitmix64 (Steele, Lea, Flood, Fast splittable pseudorandom number generators,
# OOPSLA 2014), as signed 64-bit words.
_PLACE = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX = 0xBF58476D1CE4E5B9 - (1 << 64)
# The 35 bits that remain of 64 after a shift by 29: torch copies the sign into the others.
_SHIFT, _KEPT = 29, (1 << 35) - 1
# Words at once, so that what is computed in between stays small beside the weights.
_CHUNK = 1 << 20


def fingerprint(
    parameters: Iterable[tuple[str, torch.Tensor]], others: Iterable[tuple[str, str]] = ()
) -> str:
    """SHA-256 (hex) over the names and sums of named tensors, in the names' order.

    Args:
        others: names and fingerprints of further ones.
    """
    digest = hashlib.sha256()
    for name, parameter in sorted(parameters, key=lambda named: named[0]):
        total, rest = _sum(parameter.detach())
        digest.update(f"{name}\0{parameter.dtype}\0{tuple(parameter.shape)}\0{total}\0".encode())
        digest.update(rest)
    for name, mark in sorted(others):
        digest.update(f"{name}\0{mark}\0".encode())
    return digest.hexdigest()


def _sum(tensor: torch.Tensor) -> tuple[int, bytes]:
    """The sum over all words, each mixed with its place, and the last bytes that fill no word.

    A sum that is linear in the words wouldn't do: bfloat16 values that change places over a power
    of two of words would leave it as it was, modulo 2**64.
    """
    bits = tensor.contiguous().reshape(-1).view(torch.uint8)
    whole = bits.numel() // 8 * 8
    words = bits[:whole].view(torch.int64)
    total = 0
    for first in range(0, words.numel(), _CHUNK):
        part = words[first : first + _CHUNK]
        mixed = torch.arange(first, first + part.numel(), device=part.device, dtype=torch.int64)
        mixed = mixed.mul_(_PLACE).add_(part).mul_(_MIX)
        mixed = mixed.bitwise_xor_((mixed >> _SHIFT).bitwise_and_(_KEPT)).mul_(_PLACE)
        total += int(mixed.sum())
    return total % (1 << 64), bytes(bits[whole:].tolist())
