"""Nodes that aim at somebody else: an author, a node's good name, the validator itself.

That their own files are refused isn't enough: what they aimed at must stay as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from prime_core.api import PrimeError
from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Heard, statement_over, write
from prime_core.testing.attacks.hearing import Hearing
from prime_core.testing.attacks.world import World

THIEF = "0"  # a name that is judged before all others


def copied_first(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The author's very bytes, signed by the thief, and judged before the author's."""
    found = []
    for each in attempts:
        dispatch = replace(each.dispatch, node=THIEF)
        said = statement_over(world.other, dispatch, each.data)
        found.append(replace(each, dispatch=dispatch, statement=said))
    return found


def authors(world: World, honest: Sequence[Attempt], forged: Sequence[Attempt]) -> list[Heard]:
    """The thief's verdicts; harm is an author's file that isn't accepted."""
    hearing = Hearing(world, {THIEF: world.other.address})
    hearing.submit([*forged, *honest])
    hearing.judge()
    found = []
    for theirs, own in zip(forged, honest, strict=True):
        said = hearing.verdict(own.dispatch.key)
        accepted = said is not None and said.decision == "accepted"
        why = "" if accepted else f"the author's file: {said.reason if said else 'no verdict'}"
        found.append(_heard(hearing, theirs, why))
    return found


def junk_in_anothers_name(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Noise, or another's rows, in a node's name, after its own files: no statement, or a false."""
    found = []
    for index, each in enumerate(attempts):
        dispatch = replace(each.dispatch, n=len(attempts) + each.dispatch.n)
        data = each.data if index % 2 else rng.randbytes(rng.randrange(1, 4096))
        said = statement_over(world.other, dispatch, data) if index % 3 else None
        found.append(replace(each, dispatch=dispatch, data=data, statement=said))
    return found


def records(world: World, honest: Sequence[Attempt], forged: Sequence[Attempt]) -> list[Heard]:
    """Verdicts on the junk; harm is a record of its victim that isn't what it was."""
    hearing = Hearing(world)
    hearing.submit(honest)
    hearing.judge()
    before = hearing.record(honest[0])
    found = []
    for each in forged:
        hearing.submit([each])
        hearing.judge()
        now = hearing.record(honest[0])
        said = f"{now.clean} clean and {now.rejected} rejected for {before.clean}"
        found.append(_heard(hearing, each, "" if now == before else said))
    return found


def empty(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Nothing was said, as its machine failed in every rollout."""
    return [
        write(world.signer, each.dispatch, [_failed(row) for row in each.rows], each.meta)
        for each in attempts
    ]


def _failed(row: RolloutRow) -> RolloutRow:
    return replace(
        row,
        prompt_tokens=[],
        completion_tokens=[],
        completion_mask=[],
        completion_logprobs=[],
        turn_ends=[],
        finish_reason="stop",
        score_status="error",
        score=None,
        reward=None,
        reward_parts={},
        proofs=b"",
    )


def validators(world: World, honest: Sequence[Attempt], forged: Sequence[Attempt]) -> list[Heard]:
    """Verdicts on the files, a decoy shown after each; harm is a validator that ends over one."""
    found = []
    hearing = Hearing(world, decoys=True)
    for each in forged:
        hearing.submit([each])
        harm = ""
        try:
            hearing.judge()
        except PrimeError as error:
            harm = f"the validator ends: {error.what}"
        found.append(_heard(hearing, each, harm))
    return found


def _heard(hearing: Hearing, attempt: Attempt, harm: str) -> Heard:
    said = hearing.verdict(attempt.dispatch.key)
    assert said is not None, attempt.dispatch.key
    return Heard(said, harm)
