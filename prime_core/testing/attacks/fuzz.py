"""Mutated submissions without end: each is refused, equal to the honest one, or caught by a check.

Called by tests and benchmarks/attacks.py. The strict reader decodes in this process, so that a
crash or a hang would be the caller's own; files that decode to other rows are judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from prime_core.api import FormatError
from prime_core.store.submission import Submission, read_submission, write_submission
from prime_core.testing.attacks.attack import Attempt, with_data

if TYPE_CHECKING:
    from prime_core.testing.attacks.judging import Judge
    from prime_core.testing.attacks.world import World

TOGETHER = 64  # files that decode to other rows are judged in lots
LOGPROBS, REWARDS = 0.01, 1.1e-6  # what the checks leave to another machine's rounding, float32
FOOTER = 8  # bytes behind the footer: its length and the magic number


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What became of mutated files.

    Attributes:
        refused: by the reader, as a `FormatError`.
        same: that decode to the very rows and metadata of the honest file.
        caught: that decode to others, and were rejected.
        within: that were accepted, and differ in a log-probability, a reward or a part of one, or
            a commitment alone, by no more than a check allows for another machine's rounding.
        accepted: that were accepted and differ in anything else; there must be none.
        largest: difference of a log-probability, and of a reward or part, among those `within`.
    """

    files: int
    refused: int
    same: int
    caught: int
    within: int
    accepted: int
    largest: tuple[float, float] = (0.0, 0.0)
    kept: tuple[bytes, ...] = ()


def fuzz(world: World, judge: Judge, honest: Attempt, count: int, *, seed: int = 0) -> Fuzzed:
    """Mutate one honest file so many times.

    Raises:
        Exception: anything but a `FormatError` that a mutated file makes the reader raise.
    """
    rng = Random(seed)
    original = read_submission(honest.data)
    refused = same = caught = 0
    waiting: list[Attempt] = []
    passed: list[bytes] = []
    near: list[tuple[float, float]] = []

    def judged() -> int:
        found = judge.judge(waiting)
        for attempt, each in zip(waiting, found, strict=True):
            if each.caught:
                continue
            differ = rounding(read_submission(attempt.data), original)
            if differ is None or differ[0] > LOGPROBS or differ[1] > REWARDS:
                passed.append(attempt.data)
            else:
                near.append(differ)
        waiting.clear()
        world.forget()
        return sum(each.caught for each in found)

    for _ in range(count):
        data = mutated(honest.data, rng)
        try:
            found = read_submission(data)
        except FormatError:
            refused += 1
            continue
        if _equal(found, original):
            same += 1
            continue
        waiting.append(with_data(world.signer, honest, data))
        if len(waiting) == TOGETHER:
            caught += judged()
    if waiting:
        caught += judged()
    largest = tuple(max((each[i] for each in near), default=0.0) for i in (0, 1))
    return Fuzzed(
        count, refused, same, caught, len(near), len(passed), (largest[0], largest[1]),
        tuple(passed[:8]),
    )  # fmt: skip


def rounding(found: Submission, original: Submission) -> tuple[float, float] | None:
    """Largest difference of a log-probability, and of a reward; None where more than those differ.

    Numbers that another machine may round otherwise are compared within a tolerance, by the checks
    as well as here; everything else must be equal. Commitments of the right length are left to the
    check `toploc`: one coefficient moves all points by as much, and its thresholds allow a little.
    """
    if found.meta != original.meta or len(found.rows) != len(original.rows):
        return None
    logprobs = rewards = 0.0
    for mine, theirs in zip(found.rows, original.rows, strict=True):
        plain: dict[str, Any] = {
            "completion_logprobs": theirs.completion_logprobs,
            "reward": theirs.reward,
            "reward_parts": theirs.reward_parts,
        }
        if len(mine.proofs) == len(theirs.proofs):
            plain["proofs"] = theirs.proofs
        if repr(replace(mine, **plain)) != repr(theirs):
            return None
        if set(mine.reward_parts) != set(theirs.reward_parts):
            return None
        if mine.reward is None or theirs.reward is None:
            return None
        pairs = zip(mine.completion_logprobs, theirs.completion_logprobs, strict=True)
        logprobs = max(logprobs, *(abs(a - b) for a, b in pairs), 0.0)
        parts = (abs(mine.reward_parts[k] - theirs.reward_parts[k]) for k in theirs.reward_parts)
        rewards = max(rewards, abs(mine.reward - theirs.reward), *parts)
    return logprobs, rewards


def small(world: World, honest: Attempt) -> Attempt:
    """The first group of a submission as a submission: fewer bytes, more hits a mutation."""
    first = [row for row in honest.rows if row.group_id == honest.rows[0].group_id]
    dispatch = replace(honest.dispatch, groups=1)
    data = write_submission(first, honest.meta)
    return with_data(world.signer, replace(honest, dispatch=dispatch, rows=tuple(first)), data)


def mutated(data: bytes, rng: Random) -> bytes:
    """The file with one to four random changes, half of them in its footer."""
    mutant = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        rng.choice(_CHANGES)(mutant, rng)
    return bytes(mutant)


def _place(mutant: bytearray, rng: Random) -> int:
    """Anywhere, the footer as likely as the pages."""
    size = len(mutant)
    if size <= FOOTER:
        return rng.randrange(size) if size else 0
    length = int.from_bytes(mutant[-8:-4], "little")
    start = max(0, size - FOOTER - length) if rng.random() < 0.5 else 0
    return rng.randrange(min(start, size - 1), size)


def _flip(mutant: bytearray, rng: Random) -> None:
    if mutant:
        mutant[_place(mutant, rng)] ^= 1 << rng.randrange(8)


def _set(mutant: bytearray, rng: Random) -> None:
    if mutant:
        mutant[_place(mutant, rng)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _insert(mutant: bytearray, rng: Random) -> None:
    at = _place(mutant, rng)
    mutant[at:at] = rng.randbytes(rng.randrange(1, 9))


def _delete(mutant: bytearray, rng: Random) -> None:
    at = _place(mutant, rng)
    del mutant[at : at + rng.randrange(1, 9)]


def _copy(mutant: bytearray, rng: Random) -> None:
    """A piece over another: valid fields in the wrong place."""
    source, at, size = _place(mutant, rng), _place(mutant, rng), rng.randrange(1, 65)
    piece = mutant[source : source + size]
    mutant[at : at + len(piece)] = piece


def _number(mutant: bytearray, rng: Random) -> None:
    """Four bytes that a length may be."""
    at = _place(mutant, rng)
    value = rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, len(mutant), rng.randrange(2**32)))
    mutant[at : at + 4] = value.to_bytes(4, "little")


_CHANGES: tuple[Callable[[bytearray, Random], None], ...] = (
    *(_flip, _flip, _set, _insert, _delete, _copy, _number),
)


def _equal(found: Submission, original: Submission) -> bool:
    return found.meta == original.meta and repr(found.rows) == repr(original.rows)
