"""Nodes that forge commitments; words, log-probabilities and scores are honest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Forge, write
from prime_core.testing.attacks.text import longest
from prime_core.testing.attacks.world import World
from prime_core.toploc import INTERVAL, PROOF_BYTES, build_proofs
from prime_core.toploc.field import PRIME
from prime_core.toploc.forging import Forger

Remake = Callable[[RolloutRow, Random], bytes]


def remade(remake: Remake) -> Forge:
    """Other bytes instead of the proofs of the longest rollout."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        return [_with(world, each, remake(each.rows[longest(each.rows)], rng)) for each in attempts]

    return forge


def _with(world: World, attempt: Attempt, proofs: bytes) -> Attempt:
    index = longest(attempt.rows)
    rows = list(attempt.rows)
    rows[index] = replace(rows[index], proofs=proofs)
    return write(world.signer, attempt.dispatch, rows, attempt.meta)


def none(row: RolloutRow, rng: Random) -> bytes:
    """No proofs."""
    return b""


def missing(row: RolloutRow, rng: Random) -> bytes:
    """One proof too few."""
    return row.proofs[:-PROOF_BYTES]


def surplus(row: RolloutRow, rng: Random) -> bytes:
    """One proof too many."""
    return row.proofs + row.proofs[:PROOF_BYTES]


def zero_modulus(row: RolloutRow, rng: Random) -> bytes:
    """What kills a verifier that divides by it."""
    return bytes(2) + row.proofs[2:]


def small_modulus(row: RolloutRow, rng: Random) -> bytes:
    """A modulus that folds many elements onto few points."""
    return (65_000).to_bytes(2, "big") + row.proofs[2:]


def beyond_prime(row: RolloutRow, rng: Random) -> bytes:
    """A coefficient that isn't in the field."""
    return row.proofs[:2] + PRIME.to_bytes(2, "big") + row.proofs[4:]


def longer(row: RolloutRow, rng: Random) -> bytes:
    """A polynomial of higher degree, through more points."""
    return row.proofs + bytes(2 * 4096)


def noise(row: RolloutRow, rng: Random) -> bytes:
    """Coefficients drawn at random."""
    words = [rng.randrange(PRIME) for _ in range((PROOF_BYTES - 2) // 2)]
    one = PRIME.to_bytes(2, "big") + b"".join(each.to_bytes(2, "big") for each in words)
    return one * (len(row.proofs) // PROOF_BYTES)


def constant(row: RolloutRow, rng: Random) -> bytes:
    """A constant polynomial: one bf16 value everywhere."""
    one = PRIME.to_bytes(2, "big") + (0x3FC0).to_bytes(2, "big")
    return (one + bytes(PROOF_BYTES - 4)) * (len(row.proofs) // PROOF_BYTES)


def one_chunk(row: RolloutRow, rng: Random) -> bytes:
    """One chunk's polynomial raised by a constant, all others honest."""
    at = PROOF_BYTES * rng.randrange(len(row.proofs) // PROOF_BYTES)
    value = (int.from_bytes(row.proofs[at + 2 : at + 4], "big") + 4096) % PRIME
    return row.proofs[: at + 2] + value.to_bytes(2, "big") + row.proofs[at + 4 :]


def mirrored(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Proofs of the hidden states with all signs turned, which the public library takes."""
    rows = [each.rows[longest(each.rows)] for each in attempts]
    states = world.hidden_states(rows)
    return [
        _with(world, each, build_proofs(-own)) for each, own in zip(attempts, states, strict=True)
    ]


def learnt(kind: str) -> Forge:
    """Proofs made of what is always true of the model's states, as whoever ran it once knows."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        others = [row for each in attempts for row in each.rows if row.length >= 2]
        observed = world.hidden_states(others[: 4 * INTERVAL])
        forger = Forger(observed)
        make = forger.constant if kind == "constant" else forger.channels
        return [_with(world, each, make(each.rows[longest(each.rows)].length)) for each in attempts]

    return forge


def replayed(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Proofs of the same model over other words of the same length."""
    chosen = [each.rows[longest(each.rows)] for each in attempts]
    states = world.hidden_states(chosen)
    pool = np.concatenate(states)
    found = []
    for attempt, row in zip(attempts, chosen, strict=True):
        start = rng.randrange(max(1, len(pool) - row.length))
        other = pool[start : start + row.length]
        if len(other) < row.length:
            other = pool[: row.length]
        found.append(_with(world, attempt, build_proofs(other)))
    return found
