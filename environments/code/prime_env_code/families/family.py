"""What a family of procedural problems is: a statement, a right program, wrong ones, and inputs.

Every family is a value of `Family`; sources are templates in which `@name@` stands for a drawn
parameter. Outputs are computed by running the right program, so that there is one truth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Difficulty = Literal["easy", "medium", "hard"]
Shape = Literal["int", "ints", "str", "rows"]
PLACE = re.compile(r"@([a-z_]+)@")


class Draws(Protocol):
    """Seeded draws."""

    def below(self, n: int) -> int:
        """A uniform integer in [0, n)."""
        ...

    def between(self, low: int, high: int) -> int:
        """A uniform integer in [low, high]."""
        ...

    def choice(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        ...

    def sample(self, items: Sequence[Any], count: int) -> list[Any]:
        """Different items, in a drawn order."""
        ...


@dataclass(frozen=True, slots=True)
class Family:
    """Problems that differ in their parameters.

    Attributes:
        name: unique, part of the task id.
        difficulty: one of three.
        arguments: names and shapes of the arguments of `solve`, in order.
        result: shape of the result; bool is written YES or NO by programs.
        statement: what is asked, a template.
        right: source that defines `solve`, a template.
        wrong: sources that define `solve` and are wrong on some input of every test list.
        draw: draws the parameters.
        inputs: arguments of the tests, for drawn parameters; the first are the shown examples.
    """

    name: str
    difficulty: Difficulty
    arguments: tuple[tuple[str, Shape], ...]
    result: Literal["int", "ints", "str", "bool"]
    statement: str
    right: str
    wrong: tuple[str, ...]
    draw: Callable[[Draws], dict[str, Any]]
    inputs: Callable[[Draws, Mapping[str, Any]], list[list[Any]]]


def fill(template: str, parameters: Mapping[str, Any]) -> str:
    """The template with its parameters, text as a literal where `repr` is what a program needs."""
    return PLACE.sub(lambda match: str(parameters[match[1]]), template.strip("\n"))


def integers(draws: Draws, count: int, low: int, high: int) -> list[int]:
    """Drawn integers."""
    return [draws.between(low, high) for _ in range(count)]


def text(draws: Draws, letters: str, count: int) -> str:
    """A drawn text."""
    return "".join(draws.choice(letters) for _ in range(count))
