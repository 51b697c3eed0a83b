"""Calculus: derivatives, integrals, limits, series."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from prime_env_math.procedural.problem import Problem, Template, ask
from prime_env_math.procedural.writing import polynomial, rational, times


def slope(a: int, b: int, c: int, at: int) -> Problem:
    """A derivative at a point."""
    return ask(
        f"Let $f(x) = {polynomial((a, b, c, 0))}$. Compute $f'({at})$.",
        str(3 * a * at * at + 2 * b * at + c),
        str(a * at**3 + b * at * at + c * at),
        str(3 * a * at * at + 2 * b * at),
        str(a * at * at + b * at + c),
    )


def derivative(a: int, b: int, c: int, d: int) -> Problem:
    """A derivative as an expression."""
    return ask(
        f"Differentiate $f(x) = {polynomial((a, b, c, d))}$ with respect to $x$.",
        polynomial((3 * a, 2 * b, c)),
        polynomial((a, b, c)),
        polynomial((3 * a, 2 * b, c + 1)),
        polynomial((3 * a, 2 * b, 0)),
    )


def area(a: int, b: int, low: int, width: int) -> Problem:
    """A definite integral of a polynomial."""
    high = low + width

    def antiderivative(x: int) -> Fraction:
        return Fraction(a * x**3, 3) + Fraction(b * x * x, 2)

    found = antiderivative(high) - antiderivative(low)
    return ask(
        rf"Compute $\int_{{{low}}}^{{{high}}} \left({polynomial((a, b, 0))}\right) \, dx$.",
        rational(found),
        rational(-found),
        rational(antiderivative(high)),
        rational(a * (high**2 - low**2) + b * (high - low)),
    )


def removable(first: int, second: int) -> Problem:
    """A limit at a removable gap."""
    top = polynomial((1, -first - second, first * second))
    bottom = polynomial((1, -first))
    return ask(
        rf"Compute $\lim_{{x \to {first}}} \frac{{{top}}}{{{bottom}}}$.",
        str(first - second),
        str(first + second),
        str(second - first),
        str(first - second + 1),
    )


def far(a: int, b: int, c: int, d: int) -> Problem:
    """A limit at infinity."""
    return ask(
        rf"Compute $\lim_{{x \to \infty}} \frac{{{polynomial((a, b, 1))}}}"
        rf"{{{polynomial((c, d, 2))}}}$.",
        rational(Fraction(a, c)),
        rational(Fraction(c, a)),
        rational(Fraction(1, 2)),
        rational(Fraction(a + 1, c)),
    )


def product_rule(a: int, b: int, k: int) -> Problem:
    """The derivative of a linear factor times an exponential function."""
    growth = f"e^{{{polynomial((k, 0))}}}"
    return ask(
        rf"Differentiate $f(x) = ({polynomial((a, b))}){growth}$ with respect to $x$.",
        _with_growth(k * a, k * b + a, growth),
        _with_growth(0, k * a, growth),
        _with_growth(a * k, b * k, growth),
        _with_growth(a, a + b, growth),
    )


def _with_growth(a: int, b: int, growth: str) -> str:
    if a == 0 or b == 0:
        return times(a or b, f"{'x' if a else ''}{growth}")
    return f"({polynomial((a, b))}){growth}"


def by_parts(factor: int, high: int) -> Problem:
    """An integral by parts, from 0 to `high` of factor x e^x."""
    inside = polynomial((factor, 0))
    return ask(
        rf"Compute the exact value of $\int_0^{{{high}}} {inside} e^x \, dx$.",
        _e_power(factor * (high - 1), high, factor),
        _e_power(factor * (high - 1), high, 0),
        _e_power(factor * high, high, 0),
        _e_power(factor * (high - 1), high, -factor),
    )


def _e_power(factor: int, power: int, rest: int) -> str:
    if factor == 0:
        return str(rest)
    text = times(factor, "e" if power == 1 else f"e^{{{power}}}")
    return text if rest == 0 else f"{text}{'+' if rest > 0 else ''}{rest}"


def logarithm(factor: int, high: int) -> Problem:
    """The integral of factor / x from 1 to `high`."""
    return ask(
        rf"Compute the exact value of $\int_1^{{{high}}} \frac{{{factor}}}{{x}} \, dx$.",
        times(factor, rf"\ln {high}"),
        times(factor, rf"\ln {high + 1}"),
        times(factor + 1, rf"\ln {high}"),
        rational(factor * (1 - Fraction(1, high * high))),
    )


def arctangent(factor: int, size: int) -> Problem:
    """The integral of factor / (x^2 + size^2) from 0 to `size`."""
    return ask(
        rf"Compute the exact value of $\int_0^{{{size}}} \frac{{{factor}}}{{x^2 + {size * size}}} "
        r"\, dx$.",
        times(Fraction(factor, 4 * size), r"\pi"),
        times(Fraction(factor, 4), r"\pi"),
        times(Fraction(factor, 2 * size), r"\pi"),
        rational(Fraction(45 * factor, size)),
    )


def peak(at: int, constant: int) -> Problem:
    """The local maximum of a cubic polynomial, at -at."""
    cubic = polynomial((1, 0, -3 * at * at, constant))
    return ask(
        f"Find the local maximum value of $f(x) = {cubic}$.",
        str(2 * at**3 + constant),
        str(-2 * at**3 + constant),
        str(-at),
        str(constant),
    )


def geometric_series(first: int, top: int, bottom: int) -> Problem:
    """The sum of an infinite geometric series."""
    ratio = Fraction(top, bottom)
    return ask(
        rf"Find the sum of the infinite geometric series with first term {first} and common "
        f"ratio ${rational(ratio)}$.",
        rational(first / (1 - ratio)),
        rational(first / (1 + ratio)),
        rational(first * ratio / (1 - ratio)),
    )


def taylor(factor: int, power: int) -> Problem:
    """A coefficient of the exponential series."""
    return ask(
        f"What is the coefficient of $x^{{{power}}}$ in the Taylor series of "
        f"$e^{{{polynomial((factor, 0))}}}$ at $x = 0$?",
        rational(Fraction(factor**power, factorial(power))),
        rational(Fraction(1, factorial(power))),
        rational(factor**power),
        rational(Fraction(factor, factorial(power))),
    )


TEMPLATES = (
    Template("calculus", "slope", 1,
             (range(1, 8), range(-8, 9), range(-9, 10), range(-5, 6)), slope),
    Template("calculus", "derivative", 1,
             (range(1, 10), range(-9, 10), range(-9, 10), range(-9, 10)), derivative),
    Template("calculus", "area", 2,
             (range(1, 10), range(-9, 10), range(-3, 4), range(1, 6)), area),
    Template("calculus", "removable", 2, (range(-20, 21), range(-20, 21)), removable),
    Template("calculus", "far", 2, (range(2, 13), range(-9, 10), range(2, 13), range(-9, 10)), far),
    Template("calculus", "product_rule", 2, (range(1, 13), range(-9, 10), range(2, 10)),
             product_rule),
    Template("calculus", "by_parts", 3, (range(1, 31), range(2, 13)), by_parts),
    Template("calculus", "logarithm", 3, (range(1, 13), range(2, 61)), logarithm),
    Template("calculus", "arctangent", 3, (range(1, 31), range(1, 13)), arctangent),
    Template("calculus", "peak", 3, (range(1, 13), range(-30, 31)), peak),
    Template("calculus", "geometric_series", 3, (range(1, 31), range(1, 3), (5, 7, 9, 11, 13, 15)),
             geometric_series),
    Template("calculus", "taylor", 3, (range(2, 12), range(2, 8)), taylor),
)  # fmt: skip
