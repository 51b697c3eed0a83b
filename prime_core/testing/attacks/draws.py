"""Nodes that let the claimed policy draw the words, though not as the seeds say.

Temperatures, seeds and samples of their choice; log-probabilities and proofs are honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from prime_core.engines.planning import PlannedGroup
from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Forge
from prime_core.testing.attacks.node import Replan, produce
from prime_core.testing.attacks.text import one_token, reword, saying
from prime_core.testing.attacks.world import World


def drawn(*, temperature: float | None = None, seeds: int = 0) -> Forge:
    """Words that the claimed policy drew, though not as it should have.

    Args:
        temperature: a factor on the run's.
        seeds: so many other seeds are tried for each sample, and the best reward kept.
    """

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        factor = None if temperature is None else temperature * world.facts.temperature
        best: list[list[RolloutRow]] = []
        for shift in range(1, seeds + 1) if seeds else (0,):
            dispatches = [each.dispatch for each in attempts]
            tried = produce(
                *(world, dispatches, world.engine()), temperature=factor, replan=shifted(shift)
            )
            best = [
                [_better(old, new) for old, new in zip(before, now, strict=True)]
                for before, now in zip(best or tried, tried, strict=True)
            ]
        changed = [
            {
                index: replace(row, sampling_seed=honest.sampling_seed)
                for index, (row, honest) in enumerate(zip(rows, attempt.rows, strict=True))
            }
            for rows, attempt in zip(best, attempts, strict=True)
        ]
        return reword(world, attempts, changed)

    return forge


def shifted(by: int) -> Replan:
    """The assigned groups with other seeds."""

    def replan(_: Dispatch, plan: list[PlannedGroup]) -> list[PlannedGroup]:
        return [replace(g, seeds=tuple((s + by) % 2**63 for s in g.seeds)) for g in plan]

    return replan


def _better(old: RolloutRow, new: RolloutRow) -> RolloutRow:
    return new if (new.reward or 0.0) > (old.reward or 0.0) else old


def best_copied(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The group's worst sample gives way to a copy of its best."""
    changed = []
    for attempt in attempts:
        rows = attempt.rows
        group = [i for i, row in enumerate(rows) if row.group_id == rows[0].group_id]
        group.sort(key=lambda index: (rows[index].reward or 0.0, rows[index].length))
        best, worst = rows[group[-1]], rows[group[0]]
        copy = replace(best, sample=worst.sample, sampling_seed=worst.sampling_seed)
        if best.completion_tokens == worst.completion_tokens:
            copy = saying(copy, *one_token(world, best, rng))
        changed.append({group[0]: copy})
    return reword(world, attempts, changed)
