"""Nodes that lie in numbers: scores, rewards, log-probabilities. The words are honest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, UnfitError, write
from prime_core.testing.attacks.text import longest
from prime_core.testing.attacks.world import World

SHADE = 9e-7  # of a reward: what another machine's rounding may do


def _best(world: World, row: RolloutRow) -> RolloutRow:
    """A row that says it is as good as can be, or as bad, where it is that good."""
    low, high = world.facts.score_ranges[row.environment]
    before = row.score or 0.0
    score = low if row.score == high else high
    reward = (row.reward or 0.0) + score - before
    return replace(row, score_status="scored", score=score, reward=reward)


def all_scores(world: World, row: RolloutRow) -> RolloutRow:
    """Every rollout is said to be solved."""
    return _best(world, row)


def one_score(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """One rollout of the file is said to be solved."""
    return [_one(world, each, _best(world, each.rows[0])) for each in attempts]


def one_reward(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """One reward a hundredth larger, its score as it was."""
    return [
        _one(world, each, replace(each.rows[0], reward=(each.rows[0].reward or 0.0) + 0.01))
        for each in attempts
    ]


def shaded(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A group of equal rewards, which teaches nothing, told apart within the tolerance.

    Advantages divide by how far a group's rewards differ, however little that is.

    Raises:
        UnfitError: no file has a group of equal rewards.
    """
    found = []
    for attempt in attempts:
        groups: dict[str, list[int]] = {}
        for index, row in enumerate(attempt.rows):
            groups.setdefault(row.group_id, []).append(index)
        equal = [
            members
            for members in groups.values()
            if len({attempt.rows[member].reward for member in members}) == 1
        ]
        if equal:
            first = equal[0][0]
            row = attempt.rows[first]
            reward = row.reward or 0.0
            shade = replace(row, reward=reward - SHADE * max(1.0, abs(reward)))
            found.append(_one(world, attempt, shade, first))
    if not found:
        raise UnfitError("no honest file has a group of equal rewards")
    return found


def parts(world: World, row: RolloutRow) -> RolloutRow:
    """Parts of the reward under other names."""
    return replace(row, reward_parts={f"{name}s": v for name, v in row.reward_parts.items()})


def huge(world: World, row: RolloutRow) -> RolloutRow:
    """A reward beyond all bounds."""
    return replace(row, reward=1e6)


def failed(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Says that its grader failed on the first rollout, so that its group trains nobody."""
    return [
        _one(
            world,
            each,
            replace(each.rows[0], score_status="error", score=None, reward=None, reward_parts={}),
        )
        for each in attempts
    ]


def certain(world: World, row: RolloutRow) -> RolloutRow:
    """Every token is said to have been certain."""
    return replace(row, completion_logprobs=[0.0] * len(row.completion_logprobs))


def impossible(world: World, row: RolloutRow) -> RolloutRow:
    """Log-probabilities that no token can have."""
    return replace(row, completion_logprobs=[-60.0] * len(row.completion_logprobs))


def one_logprob(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """One token of the file is said to be e times rarer, to be weighted more."""
    found = []
    for attempt in attempts:
        index = longest(attempt.rows)
        row = attempt.rows[index]
        values = list(row.completion_logprobs)
        place = rng.randrange(len(values))
        values[place] -= 1.0
        found.append(_one(world, attempt, replace(row, completion_logprobs=values), index))
    return found


def _one(world: World, attempt: Attempt, row: RolloutRow, index: int = 0) -> Attempt:
    rows = [*attempt.rows[:index], row, *attempt.rows[index + 1 :]]
    return write(world.signer, attempt.dispatch, rows, attempt.meta)
