"""Nodes that choose where they may: a near-tie's runner-up, how much to announce, whom to excuse.

Everything that they send is true but for the choice; log-probabilities and proofs are honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

import numpy as np

from prime_core.assignment import gumbel_at
from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Forge, write
from prime_core.testing.attacks.mixtures import Author, claimed, continue_with
from prime_core.testing.attacks.text import reword, saying
from prime_core.testing.attacks.world import CLAIMED, World
from prime_core.validation.recompute import prefill_request

CANDIDATES = 64  # most probable tokens among which the runner-up is looked for

Tie: TypeAlias = tuple[float, int, int]  # nats, position, the runner-up


def steered(*, once: bool) -> Forge:
    """The runner-up wins the closest race, and the rest follows honestly.

    Args:
        once: in the file; else in every rollout.
    """

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        ties = _closest(world, [row for each in attempts for row in each.rows])
        changed: list[dict[int, RolloutRow]] = []
        words: list[tuple[RolloutRow, list[int]]] = []
        for attempt in attempts:
            own, ties = ties[: len(attempt.rows)], ties[len(attempt.rows) :]
            chosen = sorted(range(len(own)), key=lambda i: own[i])[: 1 if once else None]
            changed.append({index: attempt.rows[index] for index in chosen})
            for index in chosen:
                row, (_, place, token) = attempt.rows[index], own[index]
                words.append((row, [*row.completion_tokens[:place], token]))
        limit, stops = world.facts.max_tokens, world.facts.stop_ids
        left = [each for each in words if len(each[1]) < limit and each[1][-1] not in stops]
        continue_with(world, Author(claimed, share=1.0), left)
        said = iter(words)
        finished = [{index: _ended(*next(said), stops) for index in rows} for rows in changed]
        return reword(world, attempts, finished)

    return forge


def _ended(row: RolloutRow, words: Sequence[int], stops: frozenset[int]) -> RolloutRow:
    return saying(row, words, "stop" if words[-1] in stops else "length")


def _closest(world: World, rows: Sequence[RolloutRow]) -> list[Tie]:
    """Each rollout's closest race."""
    temperature = world.recomputer.temperature
    world.prefill(rows[:1])  # loads the claimed policy
    asked = [replace(prefill_request(row, temperature), top=CANDIDATES) for row in rows]
    found = []
    for row, prefill in zip(rows, world.memo.prefill(asked), strict=True):
        best: Tie = (np.inf, 0, row.completion_tokens[0])
        for place, top in enumerate(prefill.top):
            tokens = np.array([token for token, _ in top], dtype=np.int64)
            seeds = np.full(tokens.size, row.sampling_seed, dtype=np.int64)
            noise = gumbel_at(seeds, np.full(tokens.size, place, dtype=np.int64), tokens)
            scores = np.array([value for _, value in top]) + noise
            second, first = np.argsort(scores)[-2:]
            if int(tokens[first]) == row.completion_tokens[place]:  # else a rarer one won
                gap = float(scores[first] - scores[second])
                best = min(best, (gap, place, int(tokens[second])))
        found.append(best)
    return found


def announced_fewer(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Looks at all its groups, and announces but the first."""
    found = []
    for attempt in attempts:
        rows = [row for row in attempt.rows if row.group_id == attempt.rows[0].group_id]
        dispatch = replace(world.dispatch(attempt.dispatch.n, CLAIMED), groups=1)
        found.append(write(world.signer, dispatch, rows, attempt.meta))
    return found


def idle(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """One token a rollout, and an environment that always failed: a record for no work."""
    found = []
    for attempt in attempts:
        changed = {
            index: _excused(saying(row, row.completion_tokens[:1], row.finish_reason), "error")
            for index, row in enumerate(attempt.rows)
        }
        (reworded,) = reword(world, [attempt], [changed])
        rows = [_excused(row, "error") for row in reworded.rows]
        found.append(write(world.signer, attempt.dispatch, rows, attempt.meta))
    return found


def abstained(world: World, row: RolloutRow) -> RolloutRow:
    """The grader would rather not say."""
    return _excused(row, "abstained")


def other_end(world: World, row: RolloutRow) -> RolloutRow:
    """Stop where it says length, and the other way round."""
    reason = "length" if row.finish_reason == "stop" else "stop"
    return replace(row, finish_reason=reason)


def _excused(row: RolloutRow, status: str) -> RolloutRow:
    return replace(row, score_status=status, score=None, reward=None, reward_parts={})
