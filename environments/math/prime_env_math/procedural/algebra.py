"""Algebra: equations, systems, roots, inequalities."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from prime_env_math.procedural.problem import Problem, Template, ask
from prime_env_math.procedural.writing import listed, pair, polynomial, rational, surd

NONSQUARES = tuple(n for n in range(2, 80) if isqrt(n) ** 2 != n)
SIGNS = ("<", r"\le", ">", r"\ge")


def linear(a: int, b: int, c: int) -> Problem:
    """a x + b = c."""
    return ask(
        f"Solve ${polynomial((a, b))} = {c}$ for $x$.",
        rational(Fraction(c - b, a)),
        rational(Fraction(c + b, a)),
        rational(c - b),
        rational(Fraction(c - b, -a)),
    )


def evaluate(a: int, b: int, c: int, at: int) -> Problem:
    """A quadratic polynomial at a whole number."""
    return ask(
        f"Let $f(x) = {polynomial((a, b, c))}$. What is $f({at})$?",
        str(a * at * at + b * at + c),
        str(a * at * at - b * at + c),
        str(-a * at * at + b * at + c),
        str((a * at) ** 2 + b * at + c),
    )


def roots(first: int, gap: int) -> Problem:
    """Both roots of a quadratic equation."""
    second = first + gap
    equation = polynomial((1, -first - second, first * second))
    return ask(
        f"Find all solutions of ${equation} = 0$. List them separated by commas.",
        listed(first, second),
        listed(-first, -second),
        str(first),
        listed(first, second + 1),
    )


def system(a: int, b: int, multiple: int, shift: int, x: int, y: int) -> Problem:
    """Two equations in two unknowns; the determinant is a * shift, never zero."""
    c, d = a * multiple, b * multiple + shift
    lines = [
        f"{polynomial((left, 0))}{_term(right)} = {left * x + right * y}"
        for left, right in ((a, b), (c, d))
    ]
    return ask(
        f"Find the ordered pair $(x, y)$ with ${lines[0]}$ and ${lines[1]}$.",
        pair(x, y),
        pair(y, x),
        pair(-x, y),
        pair(x, y + 1),
    )


def _term(factor: int) -> str:
    text = polynomial((factor, 0), "y")
    return text if text.startswith("-") else f"+{text}"


def inequality(first: int, gap: int, sign: int) -> Problem:
    """The solution set of a quadratic inequality in interval notation."""
    second = first + gap
    left = polynomial((1, -first - second, first * second))
    inside, strict = sign < 2, sign % 2 == 0
    sets = {
        (between, tight): _solution_set(first, second, between, tight)
        for between in (True, False)
        for tight in (True, False)
    }
    return ask(
        f"Solve ${left} {SIGNS[sign]} 0$ over the real numbers. "
        "Give the solution set in interval notation.",
        sets[inside, strict],
        sets[inside, not strict],
        sets[not inside, strict],
    )


def _solution_set(low: int, high: int, between: bool, strict: bool) -> str:
    if between:
        return f"({low}, {high})" if strict else f"[{low}, {high}]"
    left = rf"(-\infty, {low}{')' if strict else ']'}"
    right = rf"{'(' if strict else '['}{high}, \infty)"
    return rf"{left} \cup {right}"


def complex_root(real: int, imaginary: int) -> Problem:
    """The root with positive imaginary part."""
    equation = polynomial((1, -2 * real, real * real + imaginary * imaginary))
    return ask(
        f"One solution of ${equation} = 0$ has a positive imaginary part. "
        "Give it in the form $a+bi$.",
        _complex(real, imaginary),
        _complex(real, -imaginary),
        _complex(-real, imaginary),
        _complex(imaginary, real),
    )


def _complex(real: int, imaginary: int) -> str:
    part = polynomial((imaginary, 0), "i")
    if real == 0 or imaginary == 0:
        return part if real == 0 else str(real)
    return f"{real}{part}" if part.startswith("-") else f"{real}+{part}"


def sum_of_cubes(total: int, product: int) -> Problem:
    """A symmetric function of the roots, by Vieta's formulas."""
    return ask(
        rf"Let $r$ and $s$ be the roots of ${polynomial((1, -total, product))} = 0$. "
        "Compute $r^3 + s^3$.",
        str(total**3 - 3 * total * product),
        str(total**3 + 3 * total * product),
        str(total**3 - 3 * product),
        str(total**2 - 2 * product),
    )


def surd_root(centre: int, radicand: int) -> Problem:
    """The larger root, which holds a square root."""
    equation = polynomial((1, -2 * centre, centre * centre - radicand))
    return ask(
        f"What is the larger solution of ${equation} = 0$? Give it exactly.",
        surd(centre, 1, radicand),
        surd(centre, -1, radicand),
        surd(-centre, 1, radicand),
        surd(centre, 1, radicand + 1),
    )


TEMPLATES = (
    Template("algebra", "linear", 1, (range(2, 13), range(-20, 21), range(-30, 31)), linear),
    Template("algebra", "evaluate", 1,
             (range(1, 10), range(-9, 10), range(-9, 10), range(-6, 7)), evaluate),
    Template("algebra", "roots", 2, (range(-15, 15), range(1, 16)), roots),
    Template("algebra", "system", 2,
             (range(1, 7), range(1, 7), range(1, 4), range(1, 5), range(-9, 10), range(-9, 10)),
             system),
    Template("algebra", "inequality", 3, (range(-15, 15), range(1, 16), range(4)), inequality),
    Template("algebra", "complex_root", 3, (range(-15, 16), range(1, 16)), complex_root),
    Template("algebra", "sum_of_cubes", 3, (range(-12, 13), range(-15, 16)), sum_of_cubes),
    Template("algebra", "surd_root", 3, (range(-15, 16), NONSQUARES), surd_root),
)  # fmt: skip
