"""The problems: a story, its numbers, and the expression that answers it.

Called by the task list; a problem is a pure function of (seed, index, digits).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

# Story and expression; a, b, c and d are numbers of the asked size.
STORIES: tuple[tuple[str, str], ...] = (
    (
        "A press prints {a} sheets an hour. It runs for {b} hours, and {c} of its sheets are "
        "spoiled. How many good sheets does it print?",
        "{a}*{b}-{c}",
    ),
    (
        "A hall has {a} rows of {b} seats, and {c} more seats stand on the balcony. How many seats "
        "are there?",
        "{a}*{b}+{c}",
    ),
    (
        "A ship carries {a} crates of {b} apples and {c} crates of {d} pears. How many pieces of "
        "fruit does it carry?",
        "{a}*{b}+{c}*{d}",
    ),
    (
        "Of two teams that pack parcels, one has {a} people and the other {b}. Every person packs "
        "{c} parcels. How many parcels do both teams pack together?",
        "({a}+{b})*{c}",
    ),
    (
        "One mill grinds {a} sacks a day for {b} days, another {c} sacks a day for {d} days. By "
        "how many sacks is the first ahead? (Below zero if it is behind.)",
        "{a}*{b}-{c}*{d}",
    ),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        key: names its story and its numbers, e.g. `2:417,38,250,91`.
    """

    key: str
    question: str
    expression: str


def problem(seed: int, index: int, digits: int) -> Problem:
    """The problem at an index of the endless list of a seed."""
    data = hashlib.sha256(f"prime-env-calculator {seed} {index} {digits}".encode()).digest()
    words = [int.from_bytes(data[at : at + 6], "big") for at in range(0, 30, 6)]
    low, span = 10 ** (digits - 1) + 1, 9 * 10 ** (digits - 1) - 1
    story = words[0] % len(STORIES)
    numbers = dict(zip("abcd", (low + word % span for word in words[1:]), strict=True))
    question, expression = STORIES[story]
    used = [str(numbers[name]) for name in "abcd" if f"{{{name}}}" in expression]
    return Problem(
        key=f"{story}:{','.join(used)}",
        question=question.format(**numbers),
        expression=expression.format(**numbers),
    )
