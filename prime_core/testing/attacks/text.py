"""Nodes that submit words which the seeds don't draw; everything else of their files is honest.

Log-probabilities and proofs come from an honest forward pass of the claimed policy over the words
that are submitted, scores from the verifier: what a node can do at best once it has chosen them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeAlias

from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, Forge, UnfitError
from prime_core.testing.attacks.node import AT_ONCE, reworded
from prime_core.testing.attacks.world import World

Said: TypeAlias = tuple[list[int], str]  # the completion's tokens and its finish reason
Edit: TypeAlias = Callable[[World, RolloutRow, Random], Said]

POISON = 12  # tokens that are planted, where the token limit leaves room for so many
CHANGED = 3  # tokens that an edit within the text replaces


def reword(
    world: World, attempts: Sequence[Attempt], changed: Sequence[dict[int, RolloutRow]]
) -> list[Attempt]:
    """Submissions with some rows exchanged, the forward passes of all made together."""
    world.prefill([row for rows in changed for row in rows.values() if row.length])
    with ThreadPoolExecutor(AT_ONCE) as asking:
        return list(asking.map(partial(reworded, world), attempts, changed))


def saying(row: RolloutRow, tokens: Sequence[int], finish: str) -> RolloutRow:
    """A row of one turn with these tokens."""
    return replace(
        row,
        completion_tokens=list(tokens),
        completion_mask=[True] * len(tokens),
        completion_logprobs=[0.0] * len(tokens),
        finish_reason=finish,
        turn_ends=[len(tokens)],
    )


def longest(rows: Sequence[RolloutRow]) -> int:
    """The row that leaves most to edit."""
    return max(range(len(rows)), key=lambda index: rows[index].length)


def in_one_row(edit: Edit) -> Forge:
    """Edits the longest rollout of each file; all others are honest."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        changed = []
        for attempt in attempts:
            index = longest(attempt.rows)
            row = attempt.rows[index]
            changed.append({index: saying(row, *edit(world, row, rng))})
        return reword(world, attempts, changed)

    return forge


def padded(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The shortest rollout doesn't end: its last word is repeated up to the token limit."""
    changed = []
    for attempt in attempts:
        index = min(range(len(attempt.rows)), key=lambda i: attempt.rows[i].length)
        tokens = _padded(world, attempt.rows[index], rng)
        changed.append({index: saying(attempt.rows[index], tokens, "length")})
    return reword(world, attempts, changed)


def _padded(world: World, row: RolloutRow, rng: Random) -> list[int]:
    """What it said, at least half of the limit left to repeat its last word."""
    limit = world.facts.max_tokens
    tokens = _open(world, row)[: limit // 2] or words(world, 1, rng)
    return [*tokens, *[tokens[-1]] * (limit - len(tokens))]


def overlong(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A rollout beyond the token limit, which its row says is higher."""
    changed = []
    for attempt in attempts:
        row = attempt.rows[0]
        tokens = [*_padded(world, row, rng), *words(world, 4, rng)]
        longer = replace(row, max_tokens=row.max_tokens + 4)
        changed.append({0: saying(longer, tokens, "length")})
    return reword(world, attempts, changed)


def in_all_rows(edit: Edit) -> Forge:
    """Edits every rollout."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        changed = [
            {i: saying(row, *edit(world, row, rng)) for i, row in enumerate(each.rows)}
            for each in attempts
        ]
        return reword(world, attempts, changed)

    return forge


def words(world: World, count: int, rng: Random) -> list[int]:
    """Tokens that end nothing."""
    facts = world.facts
    size = min(facts.vocabulary, len(world.tokenizer))
    special = {*facts.stop_ids, *world.tokenizer.all_special_ids}
    plain = [token for token in range(size) if token not in special]
    return rng.choices(plain, k=count)


def end(world: World) -> int:
    return min(world.facts.stop_ids)


def _open(world: World, row: RolloutRow) -> list[int]:
    """The tokens without their end token."""
    return [token for token in row.completion_tokens if token not in world.facts.stop_ids]


def suffix(world: World, row: RolloutRow, rng: Random) -> Said:
    """An honest completion, then planted words, then the end."""
    poison, room = _planted(world, 1, rng)
    return [*_open(world, row)[:room], *poison, end(world)], "stop"


def after_the_end(world: World, row: RolloutRow, rng: Random) -> Said:
    """Planted words behind the end token, where a verifier doesn't look."""
    poison, room = _planted(world, 2, rng)
    return [*_open(world, row)[:room], end(world), *poison, end(world)], "stop"


def prefix(world: World, row: RolloutRow, rng: Random) -> Said:
    """Planted words, then what the model said."""
    poison, room = _planted(world, 1, rng)
    return [*poison, *_open(world, row)[:room], end(world)], "stop"


def _planted(world: World, ends: int, rng: Random) -> tuple[list[int], int]:
    """Words to plant, and how many of the model's own have room beside them and the end tokens.

    Raises:
        UnfitError: not even one has.
    """
    room = world.facts.max_tokens - ends
    if room < 1:
        raise UnfitError(f"a rollout of {world.facts.max_tokens} tokens has no room to plant words")
    count = min(POISON, (room + 1) // 2)
    return words(world, count, rng), room - count


def within(world: World, row: RolloutRow, rng: Random) -> Said:
    """A few tokens replaced in the middle, the rest as it was."""
    tokens = list(row.completion_tokens)
    for place in rng.sample(range(max(1, len(tokens) - 1)), min(CHANGED, max(1, len(tokens) - 1))):
        tokens[place] = _other(world, tokens[place], rng)
    return tokens, row.finish_reason


def one_token(world: World, row: RolloutRow, rng: Random) -> Said:
    """One token replaced."""
    tokens = list(row.completion_tokens)
    place = rng.randrange(max(1, len(tokens) - 1))
    tokens[place] = _other(world, tokens[place], rng)
    return tokens, row.finish_reason


def _other(world: World, token: int, rng: Random) -> int:
    while (found := words(world, 1, rng)[0]) == token:
        pass
    return found


def truncated(world: World, row: RolloutRow, rng: Random) -> Said:
    """Half of it, as if a limit had cut it."""
    return _half(world, row), "length"


def out_of_turns(world: World, row: RolloutRow, rng: Random) -> Said:
    """Half of it, as if the environment had answered and no turn were left."""
    return _half(world, row), "turns"


def ended_early(world: World, row: RolloutRow, rng: Random) -> Said:
    """Half of it, and an end token that wasn't drawn."""
    return [*_half(world, row), end(world)], "stop"


def _half(world: World, row: RolloutRow) -> list[int]:
    tokens = _open(world, row)
    half = tokens[: max(1, len(tokens) // 2)]
    return half or [row.completion_tokens[0]]


def forced(world: World, row: RolloutRow, rng: Random) -> Said:
    """Somebody else's words altogether."""
    room = world.facts.max_tokens - 1
    count = min(room, max(4, row.length - 1))
    return [*words(world, count, rng), end(world)], "stop"


def golden(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The gold answer in every rollout."""
    changed = []
    for attempt in attempts:
        plan = world.recomputer.plan(attempt.dispatch, attempt.dispatch.node_class)
        said = {group.group_id: _gold(world, group.environment, group.task) for group in plan}
        changed.append(
            {
                index: saying(row, [*said[row.group_id], end(world)], "stop")
                for index, row in enumerate(attempt.rows)
            }
        )
    return reword(world, attempts, changed)


def _gold(world: World, environment: str, task: int) -> list[int]:
    pool = world.recomputer.rescorer.pools[environment]
    text = world.recomputer.loop.run(pool.gold(task))
    tokens = world.tokenizer.encode(text, add_special_tokens=False)
    return list(tokens[: world.facts.max_tokens - 1])


def _conversations(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Submissions with a rollout of several turns.

    Raises:
        UnfitError: there is none.
    """
    found = [each for each in attempts if any(len(row.turn_ends) > 1 for row in each.rows)]
    if not found:
        raise UnfitError("no honest rollout has a second turn")
    return found


def environments_words(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Another word in what the environment answered, e.g. a hint."""
    changed, attempts = [], _conversations(attempts)
    for attempt in attempts:
        index, row = next(
            (i, row) for i, row in enumerate(attempt.rows) if not all(row.completion_mask)
        )
        tokens = list(row.completion_tokens)
        place = row.completion_mask.index(False)
        tokens[place] = _other(world, tokens[place], rng)
        changed.append({index: replace(row, completion_tokens=tokens)})
    return reword(world, attempts, changed)


def last_turn_left_out(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The conversation ends before the environment's answer, as if it had none."""
    changed, attempts = [], _conversations(attempts)
    for attempt in attempts:
        index, row = next((i, row) for i, row in enumerate(attempt.rows) if len(row.turn_ends) > 1)
        end = row.turn_ends[0]
        shorter = replace(
            row,
            completion_tokens=row.completion_tokens[:end],
            completion_mask=row.completion_mask[:end],
            turn_ends=[end],
            finish_reason="stop",
        )
        changed.append({index: shorter})
    return reword(world, attempts, changed)


def last_turn_cut(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """The last turn ends halfway, where the limit of turns is said to have ended it."""
    changed, attempts = [], _conversations(attempts)
    for attempt in attempts:
        rows = attempt.rows
        index = max(range(len(rows)), key=lambda i: len(rows[i].turn_ends))
        row = rows[index]
        start = row.turn_ends[-2] if len(row.turn_ends) > 1 else 0
        own = row.completion_mask.index(True, start)
        end = own + max(1, (row.turn_ends[-1] - own) // 2)
        shorter = replace(
            row,
            completion_tokens=row.completion_tokens[:end],
            completion_mask=row.completion_mask[:end],
            turn_ends=[*row.turn_ends[:-1], end],
            finish_reason="turns",
        )
        changed.append({index: shorter})
    return reword(world, attempts, changed)
