"""What a procedural problem is, and a template: a numbered space of problems of one sort.

Used by the topics' modules and by the task list. Invariant: a problem is a pure function of its
template and its values, every value of every range is allowed, and no two ask the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from prime_env_math.topics import Level, Topic


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        question: what is asked, LaTeX between dollars.
        gold: the exact answer, LaTeX.
        near: wrong answers that a usual mistake gives, as canonical as the gold.
    """

    question: str
    gold: str
    near: tuple[str, ...]


def ask(question: str, gold: str, *mistakes: str) -> Problem:
    """A problem; mistakes that happen to give the right answer are left out.

    All answers are written by one canonical writer, so equal values are equal texts.
    """
    return Problem(question, gold, tuple(dict.fromkeys(m for m in mistakes if m != gold)))


@dataclass(frozen=True, slots=True)
class Template:
    """All problems of one sort.

    Attributes:
        topic: the field it belongs to.
        name: unique within the topic.
        level: 1 (one step), 2 (a method), 3 (several steps).
        ranges: the values that each parameter may have.
        build: makes the problem from one value per range.
    """

    topic: Topic
    name: str
    level: Level
    ranges: tuple[Sequence[int], ...]
    build: Callable[..., Problem]

    @property
    def full_name(self) -> str:
        """Unique over all topics."""
        return f"{self.topic}.{self.name}"

    @property
    def size(self) -> int:
        """How many problems there are."""
        return prod(len(values) for values in self.ranges)

    def values(self, index: int) -> tuple[int, ...]:
        """The values of a problem by its number in [0, size)."""
        found = []
        for values in self.ranges:
            index, digit = divmod(index, len(values))
            found.append(values[digit])
        return tuple(found)

    def problem(self, values: Sequence[int]) -> Problem:
        """The problem of these values."""
        return self.build(*values)
