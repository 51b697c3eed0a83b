"""Easy families: one loop over numbers or letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_env_code.families.family import Draws, Family, integers, text

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _two_divisors(draws: Draws) -> dict[str, Any]:
    a = draws.between(2, 12)
    b = draws.between(a + 1, 40)
    while b % a == 0:
        b += 1  # or b would add nothing
    return {"a": a, "b": b}


def _limits(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    a, b = parameters["a"], parameters["b"]
    fixed = [[a * b * 2], [a], [b - 1], [0]]
    return fixed + [[draws.between(20, 2000)] for _ in range(6)]


MULTIPLES = Family(
    name="multiples",
    difficulty="easy",
    arguments=(("n", "int"),),
    result="int",
    statement="Given an integer n (0 <= n <= 2000), compute the sum of all positive integers up to "
    "and including n that are divisible by @a@ or by @b@.",
    right="""
def solve(n):
    return sum(i for i in range(1, n + 1) if i % @a@ == 0 or i % @b@ == 0)
""",
    wrong=(
        """
def solve(n):
    return sum(i for i in range(1, n) if i % @a@ == 0 or i % @b@ == 0)
""",
        """
def solve(n):
    return sum(i for i in range(1, n + 1) if i % @a@ == 0 and i % @b@ == 0)
""",
        """
def solve(n):
    return sum(i for i in range(1, n + 1) if i % @a@ == 0)
""",
    ),
    draw=_two_divisors,
    inputs=_limits,
)


def _letters(draws: Draws) -> dict[str, Any]:
    chosen = "".join(sorted(draws.sample(LETTERS, draws.between(3, 6))))
    return {"letters": chosen}


def _texts(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    letters = parameters["letters"]
    fixed = [[letters + letters[0]], [letters[-1] + LETTERS], [letters[0].upper() + letters]]
    pool = LETTERS + letters * 3 + letters.upper()
    return fixed + [[text(draws, pool, draws.between(5, 60))] for _ in range(7)]


LETTER_COUNT = Family(
    name="letter_count",
    difficulty="easy",
    arguments=(("s", "str"),),
    result="int",
    statement="Given a string s of English letters, count the positions that hold one of the "
    'letters "@letters@", in lower or upper case, directly followed by another of them or by the '
    "end of the string.",
    right="""
def solve(s):
    wanted = set("@letters@")
    s = s.lower()
    return sum(
        c in wanted and (i + 1 == len(s) or s[i + 1] in wanted) for i, c in enumerate(s)
    )
""",
    wrong=(
        """
def solve(s):
    wanted = set("@letters@")
    s = s.lower()
    return sum(c in wanted for c in s)
""",
        """
def solve(s):
    wanted = set("@letters@")
    s = s.lower()
    return sum(c in wanted and (i + 1 < len(s) and s[i + 1] in wanted) for i, c in enumerate(s))
""",
        """
def solve(s):
    wanted = set("@letters@")
    return sum(
        c in wanted and (i + 1 == len(s) or s[i + 1] in wanted) for i, c in enumerate(s)
    )
""",
    ),
    draw=_letters,
    inputs=_texts,
)


def _mapping(draws: Draws) -> dict[str, Any]:
    return {
        "factor": draws.between(2, 19),
        "shift": draws.between(1, 50),
        "modulus": draws.between(60, 200),
    }


def _number_lists(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    fixed = [[[1, 2, 3]], [[-1]], [[parameters["modulus"], -parameters["modulus"] - 1]]]
    return fixed + [[integers(draws, draws.between(2, 12), -500, 500)] for _ in range(7)]


LINEAR_MAP = Family(
    name="linear_map",
    difficulty="easy",
    arguments=(("values", "ints"),),
    result="ints",
    statement="Given a list of integers values, replace every x by (@factor@ * x + @shift@) modulo "
    "@modulus@, a number from 0 to @modulus@ - 1, and give the results in reverse order.",
    right="""
def solve(values):
    return [(@factor@ * x + @shift@) % @modulus@ for x in reversed(values)]
""",
    wrong=(
        """
def solve(values):
    return [(@factor@ * x + @shift@) % @modulus@ for x in values]
""",
        """
def solve(values):
    return [@factor@ * x + @shift@ for x in reversed(values)]
""",
        """
def solve(values):
    return [(@factor@ * (x + @shift@)) % @modulus@ + 1 for x in reversed(values)]
""",
    ),
    draw=_mapping,
    inputs=_number_lists,
)

EASY = (MULTIPLES, LETTER_COUNT, LINEAR_MAP)
