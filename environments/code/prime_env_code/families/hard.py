"""Hard families: dynamic programming and search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_env_code.families.family import Draws, Family, integers
from prime_env_code.families.machine import MACHINE


def _steps(draws: Draws) -> dict[str, Any]:
    steps = sorted(draws.sample(range(1, 12), draws.between(2, 4)))
    return {
        "steps": steps,
        "banned": draws.between(3, 9),
        "modulus": draws.choice([997, 10007, 1000003]),
    }


def _step_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    banned, least = parameters["banned"], parameters["steps"][0]
    fixed = [[least], [0], [banned], [2 * banned], [900], [banned + parameters["steps"][-1]]]
    return fixed + [[draws.between(10, 600)] for _ in range(6)]


WAYS = Family(
    name="ways",
    difficulty="hard",
    arguments=(("n", "int"),),
    result="int",
    statement="A walk starts at 0 and makes steps of the lengths @steps@ only, in any order and "
    "any number. It must never stand on a positive multiple of @banned@. Count the different walks "
    "that end exactly at n (0 <= n <= 900; the empty walk ends at 0), modulo @modulus@.",
    right="""
def solve(n):
    ways = [1] + [0] * n
    for place in range(1, n + 1):
        if place % @banned@:
            ways[place] = sum(ways[place - s] for s in @steps@ if s <= place) % @modulus@
    return ways[n] % @modulus@
""",
    wrong=(
        """
def solve(n):
    ways = [1] + [0] * n
    for place in range(1, n + 1):
        ways[place] = sum(ways[place - s] for s in @steps@ if s <= place) % @modulus@ + 1
    return ways[n] % @modulus@
""",
        """
def solve(n):
    ways = [1] + [0] * n
    for s in @steps@:
        for place in range(s, n + 1):
            ways[place] += ways[place - s]
    return ways[n] % @modulus@ + (n % @banned@ == 0)
""",
    ),
    draw=_steps,
    inputs=_step_inputs,
)


def _jumper(draws: Draws) -> dict[str, Any]:
    a = draws.between(1, 3)
    return {"a": a, "b": draws.between(a + 1, 5), "wall": draws.choice("#X*%")}


def _board_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    a, b, wall = parameters["a"], parameters["b"], parameters["wall"]
    empty = [["." * (b + 1) for _ in range(a + 1)]]
    blocked = [["." * b + wall for _ in range(a + 1)]]
    single = [["."]]
    big = [["." * 14 for _ in range(14)]]
    boards = [empty, blocked, single, big]
    for _ in range(6):
        rows, columns = draws.between(5, 13), draws.between(5, 13)
        cells = [
            [wall if draws.below(6) == 0 else "." for _ in range(columns)] for _ in range(rows)
        ]
        cells[0][0] = "."
        boards.append([["".join(row) for row in cells]])
    return boards


JUMPER = Family(
    name="jumper",
    difficulty="hard",
    arguments=(("rows", "rows"),),
    result="int",
    statement="A piece stands on the top left cell of a board, given as rows of cells: a dot is "
    "free, @wall@ is not. It jumps @a@ cells along one axis and @b@ along the other, in any "
    "direction, from a free cell to a free cell of the board. The top left cell is free. Compute "
    "the least number of jumps to the bottom right cell, or -1 where it can't be reached.",
    right="""
def solve(rows):
    height, width = len(rows), len(rows[0])
    jumps = [(y * p, x * q) for y, x in ((@a@, @b@), (@b@, @a@)) for p in (1, -1) for q in (1, -1)]
    seen, front, count = {(0, 0)}, [(0, 0)], 0
    while front:
        if (height - 1, width - 1) in front:
            return count
        following = []
        for y, x in front:
            for dy, dx in jumps:
                cell = (y + dy, x + dx)
                inside = 0 <= cell[0] < height and 0 <= cell[1] < width
                if inside and cell not in seen and rows[cell[0]][cell[1]] == ".":
                    seen.add(cell)
                    following.append(cell)
        front, count = following, count + 1
    return -1
""",
    wrong=(
        """
def solve(rows):
    height, width = len(rows), len(rows[0])
    jumps = [(y * p, x * q) for y, x in ((@a@, @b@), (@b@, @a@)) for p in (1, -1) for q in (1, -1)]
    seen, front, count = {(0, 0)}, [(0, 0)], 0
    while front:
        if (height - 1, width - 1) in front:
            return count
        following = []
        for y, x in front:
            for dy, dx in jumps:
                cell = (y + dy, x + dx)
                if 0 <= cell[0] < height and 0 <= cell[1] < width and cell not in seen:
                    seen.add(cell)
                    following.append(cell)
        front, count = following, count + 1
    return -1
""",
        """
def solve(rows):
    height, width = len(rows), len(rows[0])
    jumps = [(@a@, @b@), (@b@, @a@)]
    seen, front, count = {(0, 0)}, [(0, 0)], 1
    while front:
        if (height - 1, width - 1) in front:
            return count
        following = []
        for y, x in front:
            for dy, dx in jumps:
                cell = (y + dy, x + dx)
                inside = 0 <= cell[0] < height and 0 <= cell[1] < width
                if inside and cell not in seen and rows[cell[0]][cell[1]] == ".":
                    seen.add(cell)
                    following.append(cell)
        front, count = following, count + 1
    return -1
""",
    ),
    draw=_jumper,
    inputs=_board_inputs,
)


def _chain(draws: Draws) -> dict[str, Any]:
    return {"gap": draws.between(2, 30), "modulus": draws.between(2, 7)}


def _chain_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    gap, modulus = parameters["gap"], parameters["modulus"]
    rising = [modulus * i for i in range(6)]
    exact = [0, gap * modulus, 2 * gap * modulus, 2 * gap * modulus + gap + 1]
    fixed = [[rising], [exact], [[5]], [[9, 9, 9]], [rising[::-1]], [[0, modulus, 0, modulus]]]
    return fixed + [[integers(draws, draws.between(10, 40), -60, 60)] for _ in range(6)]


CHAIN = Family(
    name="chain",
    difficulty="hard",
    arguments=(("values", "ints"),),
    result="ints",
    statement="A chain is a subsequence of the list values (not necessarily consecutive, in its "
    "order) in which neighbours differ by at most @gap@ and have different remainders modulo "
    "@modulus@ (a remainder lies between 0 and @modulus@ - 1), or are equal. Give two "
    "numbers: the length of the longest chain, and the number of positions at which a longest "
    "chain can end.",
    right="""
def solve(values):
    best = []
    for i, x in enumerate(values):
        longest = 1
        for j in range(i):
            y = values[j]
            if x == y or (abs(x - y) <= @gap@ and x % @modulus@ != y % @modulus@):
                longest = max(longest, best[j] + 1)
        best.append(longest)
    return [max(best), best.count(max(best))]
""",
    wrong=(
        """
def solve(values):
    best = []
    for i, x in enumerate(values):
        longest = 1
        for j in range(i):
            y = values[j]
            if abs(x - y) <= @gap@ and x % @modulus@ != y % @modulus@:
                longest = max(longest, best[j] + 1)
        best.append(longest)
    return [max(best), best.count(max(best))]
""",
        """
def solve(values):
    length = longest = 1
    for y, x in zip(values, values[1:]):
        if x == y or (abs(x - y) <= @gap@ and x % @modulus@ != y % @modulus@):
            length += 1
        else:
            length = 1
        longest = max(longest, length)
    return [longest, 1]
""",
    ),
    draw=_chain,
    inputs=_chain_inputs,
)

HARD = (WAYS, JUMPER, CHAIN, MACHINE)
