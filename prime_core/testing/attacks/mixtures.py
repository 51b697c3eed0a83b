"""Nodes whose rollouts have two authors in turn: the policy and another model, or two temperatures.

The sum of log-probabilities may be what the policy predicts, as one part makes up for the other;
log-probabilities and proofs are honest, as in `text`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import TypeAlias

from prime_core.api import GenerationRequest, InferenceEngine, PolicyFiles
from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Forge
from prime_core.testing.attacks.models import fewer_layers
from prime_core.testing.attacks.text import reword, saying
from prime_core.testing.attacks.world import World

Source: TypeAlias = Callable[[World], tuple[InferenceEngine, PolicyFiles]]


@dataclass(frozen=True, slots=True)
class Author:
    """Who says a part, and how: a factor on the run's temperature, and at most so many tokens."""

    source: Source
    temperature: float = 1.0
    share: float = 0.5  # of the token limit


def claimed(world: World) -> tuple[InferenceEngine, PolicyFiles]:
    """The claimed policy itself."""
    return world.engine(), world.base


PASTED = (Author(claimed, share=0.25), Author(fewer_layers, share=0.75))
# On the tiny model these parts make up for each other: sums and windows look drawn.
BALANCED = (Author(claimed, temperature=0.0, share=0.1), Author(claimed, 2.0, share=0.2))


def by_turns(authors: Sequence[Author]) -> Forge:
    """Every rollout is continued by one author after the other, until it ends."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        rows = [row for attempt in attempts for row in attempt.rows]
        said: list[list[int]] = [[] for _ in rows]
        limit, stops = world.facts.max_tokens, world.facts.stop_ids
        for author in cycle(authors):
            left = [i for i, words in enumerate(said) if not _over(words, limit, stops)]
            if not left:
                break
            continue_with(world, author, [(rows[i], said[i]) for i in left])
        finished = iter(
            saying(row, words, "stop" if words[-1] in stops else "length")
            for row, words in zip(rows, said, strict=True)
        )
        changed = [{i: next(finished) for i in range(len(each.rows))} for each in attempts]
        return reword(world, attempts, changed)

    return forge


def _over(words: Sequence[int], limit: int, stops: frozenset[int]) -> bool:
    return bool(words) and (len(words) >= limit or words[-1] in stops)


def continue_with(
    world: World, author: Author, rollouts: Sequence[tuple[RolloutRow, list[int]]]
) -> None:
    """One author's next words of each rollout, with the assigned seed's noise."""
    engine, policy = author.source(world)
    engine.load(policy)
    limit = world.facts.max_tokens
    requests = [
        GenerationRequest(
            id=str(index),
            group_id="mixture",
            token_ids=(*row.prompt_tokens, *words),
            seed=row.sampling_seed,
            position=len(words),
            max_tokens=min(limit - len(words), max(1, int(author.share * limit))),
            temperature=author.temperature * world.facts.temperature,
        )
        for index, (row, words) in enumerate(rollouts)
    ]

    async def stream() -> AsyncIterator[GenerationRequest]:
        for request in requests:
            yield request

    async def run() -> None:
        async for generation in engine.generate(stream()):
            rollouts[int(generation.id)][1].extend(generation.token_ids)

    world.recomputer.loop.run(run())
