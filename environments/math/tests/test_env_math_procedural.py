"""Every gold answer of our own problems, found again by another way: by counting, or by sympy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import factorial, gcd
from typing import Any

import pytest
import sympy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prime_env_math.procedural import TEMPLATES, Template
from prime_env_math.procedural.counting import CHOICES
from prime_env_math.procedural.geometry import ANGLES
from prime_env_math.procedural.number_theory import MODULI
from prime_env_math.procedural.order import Shuffle
from sympy import Rational

X = sympy.Symbol("x")
BY_NAME = {template.full_name: template for template in TEMPLATES}


def read(text: str) -> Any:
    """The value of an answer that `writing` wrote, as sympy has it."""
    plain = text
    while r"\frac" in plain:
        plain = re.sub(
            r"\\frac\{([^{}]*(?:\{[^{}]*\}[^{}]*)?)\}\{([^{}]*)\}", r"((\1)/(\2))", plain
        )
    plain = re.sub(r"\\sqrt\{(\d+)\}", r"*sqrt(\1)", plain)
    plain = re.sub(r"\\ln (\d+)", r"*log(\1)", plain).replace(r"\pi", "*pi")
    plain = re.sub(r"e(\^\{([^{}]*)\})?", lambda m: f"*exp({m[2] or 1})", plain)
    plain = re.sub(r"\^\{(\d+)\}", r"**\1", plain)
    plain = re.sub(r"(?<=\d)(?=[xi*])|(?<=\))(?=[x*])", "*", plain).replace("***", "*")
    plain = re.sub(r"(?<=\d)\(", "*(", plain)
    plain = re.sub(r"\*\*(?=[a-z])", "*", plain)
    plain = re.sub(r"(^|[-+(])\*", r"\1", plain)
    return sympy.sympify(plain.replace("i", "I").replace("pI", "pi"), locals={"x": X})


def numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"-?\d+", text)]


def equal(text: str, expected: Any) -> bool:
    return bool(sympy.simplify(read(text) - expected) == 0)


# --- algebra --------------------------------------------------------------------------------------


def intervals(text: str) -> sympy.Set:
    """Intervals and unions as sympy sets."""
    parts = []
    for left, low, high, right in re.findall(r"([\[(])(\S+), (\S+?)([\])])", text):
        ends = [-sympy.oo if low == r"-\infty" else int(low)]
        ends.append(sympy.oo if high == r"\infty" else int(high))
        parts.append(sympy.Interval(*ends, left == "(", right == ")"))
    return sympy.Union(*parts)


def inequality(gold: str, r: int, gap: int, sign: int) -> bool:
    left = (X - r) * (X - r - gap)
    relation = (left < 0, left <= 0, left > 0, left >= 0)[sign]
    solved = sympy.solve_univariate_inequality(relation, X, relational=False)
    return bool(intervals(gold) == solved)


def system(gold: str, a: int, b: int, m: int, s: int, x: int, y: int) -> bool:
    first, second = numbers(gold)
    c, d = a * m, b * m + s
    assert a * d != b * c, "the solution isn't unique"
    return a * first + b * second == a * x + b * y and c * first + d * second == c * x + d * y


def cubes(gold: str, total: int, product: int) -> bool:
    roots = sympy.roots(X**2 - total * X + product, X)
    return equal(gold, sympy.expand(sum(root**3 * times for root, times in roots.items())))


ALGEBRA: dict[str, Callable[..., bool]] = {
    "algebra.linear": lambda gold, a, b, c: equal(gold, sympy.solve(a * X + b - c, X)[0]),
    "algebra.evaluate": lambda gold, a, b, c, t: equal(gold, sympy.Poly([a, b, c], X).eval(t)),
    "algebra.roots": lambda gold, r, gap: (
        set(numbers(gold)) == set(sympy.roots((X - r) * (X - r - gap), X))
    ),
    "algebra.system": system,
    "algebra.inequality": inequality,
    "algebra.complex_root": lambda gold, a, b: (
        sympy.expand((read(gold) - a) ** 2 + b * b) == 0 and sympy.im(read(gold)) > 0
    ),
    "algebra.sum_of_cubes": cubes,
    "algebra.surd_root": lambda gold, p, n: equal(
        gold, max(sympy.solve(X**2 - 2 * p * X + p * p - n, X))
    ),
}

# --- number theory --------------------------------------------------------------------------------


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def smallest(which: int, number: int) -> int:
    moduli = MODULI[which]
    wanted = [number % m for m in moduli]
    return next(n for n in itertools.count(1) if [n % m for m in moduli] == wanted)


def zeros(n: int) -> int:
    left, found = factorial(n), 0
    while left % 10 == 0:
        left, found = left // 10, found + 1
    return found


def power(a: int, e: int, m: int) -> int:
    found = 1
    for _ in range(e):
        found = found * a % m
    return found


def in_base(gold: str, number: int, base: int) -> bool:
    digits, _, subscript = gold.partition("_")
    return int(digits, base) == number and subscript == f"{{{base}}}"


NUMBERS: dict[str, Callable[..., bool]] = {
    "number_theory.gcd": lambda gold, a, b: (
        int(gold) == max(d for d in divisors(6 * a) if 4 * b % d == 0)
    ),
    "number_theory.remainder": lambda gold, n, m: 0 <= int(gold) < m and (n - int(gold)) % m == 0,
    "number_theory.divisor_count": lambda gold, n: int(gold) == len(divisors(n)),
    "number_theory.lcm": lambda gold, a, b: (
        int(gold) == next(k for k in range(b, a * b + 1, b) if k % a == 0)
    ),
    "number_theory.base": in_base,
    "number_theory.inverse": lambda gold, p, a: (
        [int(gold)] == [x for x in range(1, p) if a * x % p == 1]
    ),
    "number_theory.power": lambda gold, a, e, m: int(gold) == power(a, e, m),
    "number_theory.congruences": lambda gold, i, n: int(gold) == smallest(i, n),
    "number_theory.trailing_zeros": lambda gold, n: int(gold) == zeros(n),
    "number_theory.divisor_sum": lambda gold, n: int(gold) == sum(divisors(n)),
}

# --- counting -------------------------------------------------------------------------------------


def choose(n: int, k: int) -> int:
    """Pascal's triangle, a row at a time."""
    row = [1]
    for _ in range(n):
        row = [a + b for a, b in zip([0, *row], [*row, 0], strict=True)]
    return row[k]


def compositions(total: int, parts: int) -> int:
    ways = [1] + [0] * total
    for _ in range(parts):
        ways = list(itertools.accumulate(ways))
    return ways[total]


def words(*left: int) -> int:
    """Words letter by letter, with a table of what is left."""
    table: dict[tuple[int, ...], int] = {tuple(0 for _ in left): 1}
    for state in itertools.product(*(range(n + 1) for n in left)):
        if any(state):
            table[state] = sum(
                table[tuple(n - (i == j) for j, n in enumerate(state))]
                for i, some in enumerate(state)
                if some
            )
    return table[tuple(left)]


def walks(width: int, height: int, avoid: tuple[int, int]) -> int:
    ways: dict[tuple[int, int], int] = {}
    for x, y in itertools.product(range(width + 1), range(height + 1)):
        before = ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
        ways[x, y] = 0 if (x, y) == avoid else 1 if (x, y) == (0, 0) else before
    return ways[width, height]


def seats(n: int, k: int, ring: int) -> int:
    """Chair by chair: (first taken, last taken, how many) to the number of ways."""
    states: dict[tuple[bool, bool, int], int] = {(False, False, 0): 1, (True, True, 1): 1}
    for _ in range(n - 1):
        after: dict[tuple[bool, bool, int], int] = {}
        for (first, last, some), ways in states.items():
            for taken in (False, True) if not last else (False,):
                key = (first, taken, some + taken)
                after[key] = after.get(key, 0) + ways
        states = after
    return sum(
        ways
        for (first, last, some), ways in states.items()
        if some == k and not (ring and first and last)
    )


def hits(n: int, k: int, sides: int) -> Fraction:
    found = Fraction(0)
    for spins in itertools.product((0, 1), repeat=n):
        if sum(spins) == k:
            found += Fraction(sides - 1) ** (n - k) / Fraction(sides) ** n
    return found


def drawn(red: int, blue: int) -> Fraction:
    urn = [True] * red + [False] * blue
    pairs = list(itertools.permutations(urn, 2))
    return Fraction(sum(a and b for a, b in pairs), len(pairs))


def thrown(sides: int, above: int) -> Fraction:
    pairs = list(itertools.product(range(1, sides + 1), repeat=2))
    return Fraction(sum(a + b == above + 2 for a, b in pairs), len(pairs))


def arranged(n: int, k: int) -> int:
    found = 1
    for place in range(k):
        found *= n - place
    return found


def fraction(gold: str) -> Fraction:
    found = re.fullmatch(r"(-?)\\frac\{(\d+)\}\{(\d+)\}", gold)
    if found is None:
        return Fraction(gold)
    assert gcd(int(found[2]), int(found[3])) == 1, f"{gold} isn't in lowest terms"
    return Fraction(int(found[2]), int(found[3])) * (-1 if found[1] else 1)


COUNTING: dict[str, Callable[..., bool]] = {
    "counting.choose": lambda gold, n, k, story: int(gold) == choose(n, k) and CHOICES[story] != "",
    "counting.arrange": lambda gold, n, k: int(gold) == arranged(n, k),
    "counting.dice": lambda gold, s, a: fraction(gold) == thrown(s, a),
    "counting.draws": lambda gold, r, b: fraction(gold) == drawn(r, b),
    "counting.shares": lambda gold, n, k: int(gold) == compositions(n, k),
    "counting.words": lambda gold, a, b, c: int(gold) == words(a, b, c),
    "counting.paths": lambda gold, w, h, x, y: int(gold) == walks(w, h, (x, y)),
    "counting.apart": lambda gold, n, k, ring: int(gold) == seats(n, k, ring),
    "counting.trials": lambda gold, n, k, s: fraction(gold) == hits(n, k, s),
}

# --- geometry -------------------------------------------------------------------------------------


def centre(gold: str, x: int, y: int, r: int) -> bool:
    """The equation of the text, solved by completing squares, from the question's numbers."""
    question = BY_NAME["geometry.circle_centre"].problem((x, y, r)).question
    equation = re.search(r"\$(.*) = (-?\d+)\$", question)
    assert equation is not None
    left = equation[1].replace("^2", "**2")
    left = re.sub(r"(\d)([xy])", r"\1*\2", left)
    circle = sympy.Circle(sympy.sympify(left) - int(equation[2]))
    return numbers(gold) == [circle.center.x, circle.center.y]


GEOMETRY: dict[str, Callable[..., bool]] = {
    "geometry.hypotenuse": lambda gold, a, b: equal(
        gold, sympy.Point(0, a).distance(sympy.Point(b, 0))
    ),
    "geometry.triangle_area": lambda gold, b, h: fraction(gold) == Fraction(
        sum(b * k for k in range(1, h + 1)) * 2 - b * h, 2 * h
    ),
    "geometry.circle_area": lambda gold, d: equal(gold, sympy.Circle((0, 0), Rational(d, 2)).area),
    "geometry.distance": lambda gold, x, y, a, b: equal(
        gold, sympy.Point(x, y).distance(sympy.Point(x + a, y + b))
    ),
    "geometry.polygon_angle": lambda gold, n: equal(
        gold, 180 - Rational(360, n)
    ),
    "geometry.shoelace": lambda gold, x, y, left, up, s: equal(
        gold, abs(sympy.Triangle((s, -s), (x + s, y - s), (left + s, up - s)).area)
    ),
    "geometry.circle_centre": centre,
    "geometry.equilateral": lambda gold, s: equal(
        gold, abs(sympy.Triangle((0, 0), (s, 0), (Rational(s, 2), s * sympy.sqrt(3) / 2)).area)
    ),
    "geometry.sphere": lambda gold, r: equal(
        gold, sympy.integrate(sympy.pi * (r * r - X**2), (X, -r, r))
    ),
    "geometry.sector": lambda gold, r, angle: angle in ANGLES and equal(
        gold, sympy.integrate(X * sympy.rad(angle), (X, 0, r))
    ),
}  # fmt: skip

# --- calculus -------------------------------------------------------------------------------------

CALCULUS: dict[str, Callable[..., bool]] = {
    "calculus.slope": lambda gold, a, b, c, t: equal(
        gold, sympy.diff(a * X**3 + b * X**2 + c * X, X).subs(X, t)
    ),
    "calculus.derivative": lambda gold, a, b, c, d: equal(
        gold, sympy.diff(a * X**3 + b * X**2 + c * X + d, X)
    ),
    "calculus.area": lambda gold, a, b, low, w: equal(
        gold, sympy.integrate(a * X**2 + b * X, (X, low, low + w))
    ),
    "calculus.removable": lambda gold, r, s: equal(
        gold, sympy.limit((X**2 - (r + s) * X + r * s) / (X - r), X, r)
    ),
    "calculus.far": lambda gold, a, b, c, d: equal(
        gold, sympy.limit((a * X**2 + b * X + 1) / (c * X**2 + d * X + 2), X, sympy.oo)
    ),
    "calculus.product_rule": lambda gold, a, b, k: equal(
        gold, sympy.diff((a * X + b) * sympy.exp(k * X), X)
    ),
    "calculus.by_parts": lambda gold, a, t: equal(
        gold, sympy.integrate(a * X * sympy.exp(X), (X, 0, t))
    ),
    "calculus.logarithm": lambda gold, a, t: equal(gold, sympy.integrate(a / X, (X, 1, t))),
    "calculus.arctangent": lambda gold, a, s: equal(
        gold, sympy.integrate(a / (X**2 + s * s), (X, 0, s))
    ),
    "calculus.peak": lambda gold, c, d: equal(
        gold, sympy.maximum(X**3 - 3 * c * c * X + d, X, sympy.Interval(-c - 1, 0))
    ),
    "calculus.geometric_series": lambda gold, a, p, q: equal(
        gold, sympy.summation(a * Rational(p, q) ** X, (X, 0, sympy.oo))
    ),
    "calculus.taylor": lambda gold, a, n: equal(
        gold, sympy.series(sympy.exp(a * X), X, 0, n + 1).removeO().coeff(X, n)
    ),
}

CHECKS = ALGEBRA | NUMBERS | COUNTING | GEOMETRY | CALCULUS


def test_every_template_is_checked() -> None:
    assert CHECKS.keys() == BY_NAME.keys()
    assert len(BY_NAME) == len(TEMPLATES)
    by_place = {(template.topic, template.level) for template in TEMPLATES}
    assert len(by_place) == 15, "every topic has every level"


def sample(template: Template, count: int) -> Iterator[tuple[int, ...]]:
    """Both ends, and others in a fixed order that looks random."""
    order = Shuffle(template.size, "test")
    yield template.values(0)
    yield template.values(template.size - 1)
    for position in range(min(count, template.size)):
        yield template.values(order[position])


@pytest.mark.parametrize("name", BY_NAME)
def test_golds_are_what_another_way_finds(name: str) -> None:
    for values in sample(BY_NAME[name], 4):
        made = BY_NAME[name].problem(values)
        assert CHECKS[name](made.gold, *values), f"{made.question} -> {made.gold}"


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_many_golds_are_what_another_way_finds(name: str) -> None:
    for values in sample(BY_NAME[name], 200):
        made = BY_NAME[name].problem(values)
        assert CHECKS[name](made.gold, *values), f"{made.question} -> {made.gold}"


@pytest.mark.parametrize("name", BY_NAME)
def test_problems_of_a_template_ask_different_things(name: str) -> None:
    template = BY_NAME[name]
    order = Shuffle(template.size, "distinct")
    some = [template.values(order[position]) for position in range(min(400, template.size))]
    made = [template.problem(values) for values in some]
    assert len({problem.question for problem in made}) == len(some)
    for problem in made:
        assert problem.gold not in problem.near
        assert len(set(problem.near)) == len(problem.near)
        assert problem.question.count("$") % 2 == 0


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(st.integers(1, 5000), st.text(max_size=8))
def test_an_order_holds_every_number_once(size: int, seed: str) -> None:
    order = Shuffle(size, seed)
    assert sorted(order[position] for position in range(size)) == list(range(size))
