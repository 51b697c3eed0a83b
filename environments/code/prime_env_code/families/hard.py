"""Hard families: dynamic programming, search and a small machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_env_code.families.family import Draws, Family, integers


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


NAMES = {
    "push": ("push", "load", "put"),
    "plus": ("plus", "add", "sum"),
    "times": ("times", "mul", "product"),
    "swap": ("swap", "flip", "exchange"),
    "drop": ("drop", "pop", "forget"),
    "copy": ("copy", "dup", "again"),
    "neg": ("neg", "minus", "negate"),
}


def _machine(draws: Draws) -> dict[str, Any]:
    names = {key: draws.choice(choices) for key, choices in NAMES.items()}
    return names | {"cap": draws.between(50, 400)}


def _machine_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    p = parameters
    first = [f"{p['push']} 7", f"{p['push']} 5", p["plus"], p["copy"], p["times"]]
    second = [f"{p['push']} 2", f"{p['push']} 9", p["swap"], p["neg"], p["plus"]]
    third = [f"{p['push']} {p['cap']}", f"{p['push']} 1", p["plus"]]
    programs = [first, second, third, [p["plus"]], [f"{p['push']} 3", p["neg"], p["drop"]]]
    binary = ("plus", "times", "swap")
    for _ in range(6):
        program, depth = [], 0
        for _ in range(draws.between(6, 24)):
            keys = ["push"] + (["copy", "neg", "drop"] if depth else [])
            key = draws.choice([*keys, *(binary if depth > 1 else ())])
            program.append(f"{p[key]} {draws.between(-9, 9)}" if key == "push" else p[key])
            depth += {"push": 1, "copy": 1, "neg": 0, "swap": 0}.get(key, -1)
        if draws.below(4) == 0:
            program.append(p["drop"])
        programs.append(program)
    return [[program] for program in programs]


MACHINE = Family(
    name="machine",
    difficulty="hard",
    arguments=(("rows", "rows"),),
    result="str",
    statement="A machine has a stack of integers, empty at first, and runs one instruction a row. "
    "'@push@ x' puts x on top; '@plus@' takes the two topmost numbers and puts their sum; "
    "'@times@' does the same with their product; '@swap@' exchanges the two topmost; '@drop@' "
    "removes the topmost; '@copy@' puts the topmost once more; '@neg@' changes its sign. A "
    "number above @cap@ or below -@cap@ is replaced by 0 as soon as it is put on the stack by "
    "any instruction. An instruction that needs more numbers than there are stops the "
    "machine. Give the final stack from bottom to top, numbers separated by commas, or the "
    "word error if it was stopped. An empty stack is the word empty.",
    right="""
def solve(rows):
    stack = []

    def put(x):
        stack.append(x if -@cap@ <= x <= @cap@ else 0)

    for row in rows:
        name, _, number = row.partition(" ")
        needs = {"@push@": 0, "@plus@": 2, "@times@": 2, "@swap@": 2}.get(name, 1)
        if len(stack) < needs:
            return "error"
        if name == "@push@":
            put(int(number))
        elif name == "@plus@":
            put(stack.pop() + stack.pop())
        elif name == "@times@":
            put(stack.pop() * stack.pop())
        elif name == "@swap@":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "@drop@":
            stack.pop()
        elif name == "@copy@":
            put(stack[-1])
        else:
            put(-stack.pop())
    return ",".join(map(str, stack)) or "empty"
""",
    wrong=(
        """
def solve(rows):
    stack = []
    for row in rows:
        name, _, number = row.partition(" ")
        needs = {"@push@": 0, "@plus@": 2, "@times@": 2, "@swap@": 2}.get(name, 1)
        if len(stack) < needs:
            return "error"
        if name == "@push@":
            stack.append(int(number))
        elif name == "@plus@":
            stack.append(stack.pop() + stack.pop())
        elif name == "@times@":
            stack.append(stack.pop() * stack.pop())
        elif name == "@swap@":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "@drop@":
            stack.pop()
        elif name == "@copy@":
            stack.append(stack[-1])
        else:
            stack.append(-stack.pop())
    return ",".join(map(str, stack)) or "empty"
""",
        """
def solve(rows):
    stack = []
    for row in rows:
        name, _, number = row.partition(" ")
        if name == "@push@":
            stack.append(int(number))
        elif name == "@plus@" and len(stack) > 1:
            stack.append(stack.pop() + stack.pop())
        elif name == "@times@" and len(stack) > 1:
            stack.append(stack.pop() * stack.pop())
        elif name == "@drop@" and stack:
            stack.pop()
        elif name == "@copy@" and stack:
            stack.append(stack[-1])
    return ",".join(map(str, stack)) or "empty"
""",
    ),
    draw=_machine,
    inputs=_machine_inputs,
)

HARD = (WAYS, JUMPER, CHAIN, MACHINE)
