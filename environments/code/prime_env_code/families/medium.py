"""Medium families: windows, codes and matching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_env_code.families.family import Draws, Family, integers, text


def _window(draws: Draws) -> dict[str, Any]:
    return {"width": draws.between(2, 9), "least": draws.between(-20, 20)}


def _window_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    width, least = parameters["width"], parameters["least"]
    # Windows whose sum is exactly the bound, a window at the very end, and too few numbers.
    exact = [least, *([0] * (width - 1))]
    fixed = [[[*exact, 60 * width]], [[-100] * width + [100 * width] * width], [[5] * (width - 1)]]
    return fixed + [[integers(draws, draws.between(width, 3 * width), -40, 60)] for _ in range(7)]


WINDOWS = Family(
    name="windows",
    difficulty="medium",
    arguments=(("values", "ints"),),
    result="int",
    statement="Given a list of integers values, count the groups of @width@ consecutive numbers "
    "whose sum is at least @least@. A list of fewer than @width@ numbers has no such group.",
    right="""
def solve(values):
    return sum(
        sum(values[i : i + @width@]) >= @least@ for i in range(len(values) - @width@ + 1)
    )
""",
    wrong=(
        """
def solve(values):
    return sum(sum(values[i : i + @width@]) >= @least@ for i in range(len(values) - @width@))
""",
        """
def solve(values):
    return sum(sum(values[i : i + @width@]) > @least@ for i in range(len(values) - @width@ + 1))
""",
        """
def solve(values):
    return sum(sum(values[i : i + @width@]) >= @least@ for i in range(len(values)))
""",
    ),
    draw=_window,
    inputs=_window_inputs,
)


def _base(draws: Draws) -> dict[str, Any]:
    digits = draws.sample("bcdfghjklmnpqrstvwxz", draws.between(3, 9))
    return {"digits": "".join(digits), "base": len(digits), "zero": digits[0]}


def _base_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    base = parameters["base"]
    fixed = [[base], [0], [base - 1], [base**3], [-base - 1]]
    return fixed + [[draws.between(-(10**9), 10**12)] for _ in range(6)]


NUMERALS = Family(
    name="numerals",
    difficulty="medium",
    arguments=(("n", "int"),),
    result="str",
    statement="A numeral system of base @base@ has the digits @digits@ in rising order, so that "
    "@zero@ stands for zero. Write the integer n (|n| <= 10^12) in it: no leading @zero@ unless n "
    'is zero, and a "-" before negative numbers.',
    right="""
def solve(n):
    digits = "@digits@"
    rest, written = abs(n), ""
    while rest:
        rest, digit = divmod(rest, @base@)
        written = digits[digit] + written
    return ("-" if n < 0 else "") + (written or digits[0])
""",
    wrong=(
        """
def solve(n):
    digits = "@digits@"
    rest, written = abs(n), ""
    while rest:
        rest, digit = divmod(rest, @base@)
        written = digits[digit] + written
    return ("-" if n < 0 else "") + written
""",
        """
def solve(n):
    digits = "@digits@"
    rest, written = abs(n), ""
    while rest:
        rest, digit = divmod(rest, @base@)
        written = written + digits[digit]
    return ("-" if n < 0 else "") + (written or digits[0])
""",
        """
def solve(n):
    digits = "@digits@"
    rest, written = abs(n), ""
    while rest:
        rest, digit = divmod(rest, @base@)
        written = digits[digit] + written
    return written or digits[0]
""",
    ),
    draw=_base,
    inputs=_base_inputs,
)

PAIRS = ("()", "[]", "{}", "<>")


def _brackets(draws: Draws) -> dict[str, Any]:
    pairs = draws.sample(PAIRS, draws.between(2, 3))
    return {"pairs": " and ".join(pairs), "joined": "".join(pairs), "depth": draws.between(2, 30)}


def _bracket_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    joined, depth = parameters["joined"], parameters["depth"]
    pairs = [joined[i : i + 2] for i in range(0, len(joined), 2)]
    first, second = pairs[0], pairs[1]
    nested = first[0] * depth + first[1] * depth
    fixed = [
        [first + second],
        [first[0] + second[0] + first[1] + second[1]],
        [nested],
        [first[0] + nested + first[1]],
        [first[1] + first[0]],
        [first[0]],
    ]
    return fixed + [[_nest(draws, pairs, draws.between(1, 6))] for _ in range(5)]


def _nest(draws: Draws, pairs: list[str], size: int) -> str:
    made = ""
    for _ in range(size):
        pair = draws.choice(pairs)
        made = pair[0] + made + pair[1] if draws.below(2) else made + pair
    if draws.below(3) == 0:
        place = draws.below(len(made))
        made = made[:place] + made[place + 1 :]
    return made


BRACKETS = Family(
    name="brackets",
    difficulty="medium",
    arguments=(("s", "str"),),
    result="bool",
    statement="A string of brackets is tidy if every bracket is closed by its own partner in the "
    "right order (the pairs are @pairs@) and it is nested at most @depth@ deep. Decide whether s "
    "is tidy.",
    right="""
def solve(s):
    partner = {"@joined@"[i + 1]: "@joined@"[i] for i in range(0, len("@joined@"), 2)}
    open_ones = []
    for c in s:
        if c not in partner:
            open_ones.append(c)
        elif not open_ones or open_ones.pop() != partner[c]:
            return False
        if len(open_ones) > @depth@:
            return False
    return not open_ones
""",
    wrong=(
        """
def solve(s):
    partner = {"@joined@"[i + 1]: "@joined@"[i] for i in range(0, len("@joined@"), 2)}
    open_ones = []
    for c in s:
        if c not in partner:
            open_ones.append(c)
        elif not open_ones or open_ones.pop() != partner[c]:
            return False
    return not open_ones
""",
        """
def solve(s):
    pairs = ["@joined@"[i : i + 2] for i in range(0, len("@joined@"), 2)]
    return all(s.count(pair[0]) == s.count(pair[1]) for pair in pairs)
""",
        """
def solve(s):
    partner = {"@joined@"[i + 1]: "@joined@"[i] for i in range(0, len("@joined@"), 2)}
    open_ones = []
    for c in s:
        if c not in partner:
            open_ones.append(c)
        elif not open_ones or open_ones.pop() != partner[c]:
            return False
        if len(open_ones) >= @depth@:
            return False
    return not open_ones
""",
    ),
    draw=_brackets,
    inputs=_bracket_inputs,
)


def _runs(draws: Draws) -> dict[str, Any]:
    return {"least": draws.between(2, 9), "mark": draws.choice("#*+=%&@!?~")}


def _run_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    least = parameters["least"]
    fixed = [["a" * least + "b"], ["a" * (least - 1) + "b" * (least + 8)], ["xyz" + "q" * least]]
    made = []
    for _ in range(6):
        runs = draws.between(2, 6)
        made.append(["".join(text(draws, "abcd", 1) * draws.between(1, 14) for _ in range(runs))])
    return fixed + made


RUNS = Family(
    name="runs",
    difficulty="medium",
    arguments=(("s", "str"),),
    result="str",
    statement="Shorten a string s of lower-case letters: a run of one letter that is at least "
    "@least@ long and as long as it can be is written as the letter, the sign @mark@ and the run's "
    "length. Shorter runs stay as they are.",
    right="""
def solve(s):
    made, i = "", 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        made += f"{s[i]}@mark@{j - i}" if j - i >= @least@ else s[i:j]
        i = j
    return made
""",
    wrong=(
        """
def solve(s):
    made, i = "", 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        made += f"{s[i]}@mark@{j - i}" if j - i > @least@ else s[i:j]
        i = j
    return made
""",
        """
def solve(s):
    made, i = "", 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i] and j - i < 9:
            j += 1
        made += f"{s[i]}@mark@{j - i}" if j - i >= @least@ else s[i:j]
        i = j
    return made.upper()
""",
        """
def solve(s):
    made, i = "", 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        made += f"{j - i}@mark@{s[i]}" if j - i >= @least@ else s[i:j]
        i = j
    return made
""",
    ),
    draw=_runs,
    inputs=_run_inputs,
)

MEDIUM = (WINDOWS, NUMERALS, BRACKETS, RUNS)
