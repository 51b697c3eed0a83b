"""Nodes that choose what the assignment decides: tasks, seeds, samples, targets, prompts, versions.

Words, proofs and scores are those of an honest worker that was given something else to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Forge, write
from prime_core.testing.attacks.draws import shifted
from prime_core.testing.attacks.node import honest, produce
from prime_core.testing.attacks.text import reword
from prime_core.testing.attacks.world import CLAIMED, World

FAR = 100_000  # submission indices that no honest submission of the harness has

Relabel = Callable[[RolloutRow, RolloutRow], RolloutRow]


def others(world: World, count: int) -> list[Attempt]:
    """Honest submissions under other names; made once."""
    if len(world.others) < count:
        world.others = honest(world, count, first=FAR)
    return world.others[:count]


def _relabelled(world: World, attempts: Sequence[Attempt], relabel: Relabel) -> list[Attempt]:
    """The work of other submissions, sent under these names."""
    return [
        write(
            world.signer,
            attempt.dispatch,
            [relabel(row, own) for row, own in zip(other.rows, attempt.rows, strict=True)],
            attempt.meta,
        )
        for attempt, other in zip(attempts, others(world, len(attempts)), strict=True)
    ]


def tasks(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Tasks of its choice, named openly."""
    return _relabelled(world, attempts, _named)


def hidden_tasks(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Tasks of its choice under the assigned ones' names and seeds."""

    def relabel(row: RolloutRow, own: RolloutRow) -> RolloutRow:
        return replace(
            _named(row, own),
            environment=own.environment,
            task_id=own.task_id,
            sampling_seed=own.sampling_seed,
            length_budget=own.length_budget,
        )

    return _relabelled(world, attempts, relabel)


def _named(row: RolloutRow, own: RolloutRow) -> RolloutRow:
    return replace(row, group_id=own.group_id, submission=own.submission)


def seeds(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Seeds of its choice, named openly; the words are what they draw."""
    dispatches = [each.dispatch for each in attempts]
    shift = shifted(rng.randrange(1, 2**20))
    found = produce(world, dispatches, world.engine(), replan=shift)
    return [
        write(world.signer, attempt.dispatch, rows, attempt.meta)
        for attempt, rows in zip(attempts, found, strict=True)
    ]


def incomplete(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The last sample of each group is left out."""
    return _kept(world, attempts, lambda row: row.sample < world.config.trainer.group_size - 1)


def fewer_groups(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The last group is left out, as it might have been the worst."""

    def kept(attempt: Attempt) -> Callable[[RolloutRow], bool]:
        last = attempt.rows[-1].group_id
        return lambda row: row.group_id != last

    return [found for each in attempts for found in _kept(world, [each], kept(each))]


def _kept(
    world: World, attempts: Sequence[Attempt], keep: Callable[[RolloutRow], bool]
) -> list[Attempt]:
    return [
        write(world.signer, each.dispatch, [row for row in each.rows if keep(row)], each.meta)
        for each in attempts
    ]


def in_rows(change: Callable[[World, RolloutRow], RolloutRow]) -> Forge:
    """One column changed in all rows, nothing else."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        return [
            write(world.signer, each.dispatch, [change(world, r) for r in each.rows], each.meta)
            for each in attempts
        ]

    return forge


def target(world: World, row: RolloutRow) -> RolloutRow:
    """Another length target."""
    return replace(row, length_budget=(row.length_budget or 0) + 1)


def colder(world: World, row: RolloutRow) -> RolloutRow:
    """Another temperature, named openly."""
    return replace(row, temperature=row.temperature / 2)


def more_tokens(world: World, row: RolloutRow) -> RolloutRow:
    """Another token limit, named openly."""
    return replace(row, max_tokens=row.max_tokens + 1)


def prompts(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A prompt with its first token said twice: a hint, or a wish, slipped in."""
    changed = [
        {
            index: replace(row, prompt_tokens=[row.prompt_tokens[0], *row.prompt_tokens])
            for index, row in enumerate(each.rows)
        }
        for each in attempts
    ]
    return reword(world, attempts, changed)


def too_old(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A version older than the step allows; its owner never fetched a newer one."""
    step = world.tools.rules.max_lag + CLAIMED + 1
    return _for_step(world, attempts, step)


def too_new(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A version newer than the async level allows, whose tasks it could choose among."""
    return _for_step(world, attempts, max(0, world.step_of(CLAIMED) - 1))


def _for_step(world: World, attempts: Sequence[Attempt], step: int) -> list[Attempt]:
    dispatches = [replace(each.dispatch, step=step) for each in attempts]
    found = produce(world, dispatches, world.engine())
    return [
        write(world.signer, dispatch, rows, attempt.meta)
        for dispatch, rows, attempt in zip(dispatches, found, attempts, strict=True)
    ]


def unsealed(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A version that isn't there yet."""
    version = world.newest_version + 1
    step = world.step_of(version)
    found = []
    for attempt in attempts:
        changed = {"step": step, "policy_version": version, "policy_digest": "ab" * 32}
        dispatch = replace(attempt.dispatch, **changed)  # type: ignore[arg-type]
        rows = [
            replace(
                row,
                step=step,
                policy_version=version,
                policy_digest=bytes.fromhex("ab" * 32),
                group_id=f"{step}-{row.node}-{row.submission}-{row.group_id.rpartition('-')[2]}",
            )
            for row in attempt.rows
        ]
        found.append(write(world.signer, dispatch, rows, attempt.meta))
    return found


def mislabelled(world: World, row: RolloutRow) -> RolloutRow:
    """Rows that name another version than was announced."""
    return replace(row, policy_version=row.policy_version - 1)
