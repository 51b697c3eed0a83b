"""Exact values as LaTeX, each value in one way only: equal values are equal texts.

Called by the topics' modules for questions, golds and mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Exact = int | Fraction


def rational(value: Exact) -> str:
    r"""A whole number, or \frac in lowest terms with the sign in front."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def times(value: Exact, symbol: str) -> str:
    r"""A rational multiple of a symbol: 3\pi, -\frac{\sqrt{2}}{3}, 0."""
    value = Fraction(value)
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    top = symbol if abs(value.numerator) == 1 else f"{abs(value.numerator)}{symbol}"
    if value.denominator == 1:
        return sign + top
    return rf"{sign}\frac{{{top}}}{{{value.denominator}}}"


def squarefree(number: int) -> tuple[int, int]:
    """(outside, inside) with number = outside**2 * inside, inside without square factors."""
    outside, inside, divisor = 1, number, 2
    while divisor * divisor <= inside:
        while inside % (divisor * divisor) == 0:
            inside //= divisor * divisor
            outside *= divisor
        divisor += 1
    return outside, inside


def surd(whole: Exact, factor: Exact, radicand: int) -> str:
    r"""whole + factor * \sqrt{radicand}, the root simplified."""
    outside, inside = squarefree(radicand)
    if inside == 1 or factor == 0:
        return rational(Fraction(whole) + Fraction(factor) * outside)
    root = times(Fraction(factor) * outside, rf"\sqrt{{{inside}}}")
    if whole == 0:
        return root
    return f"{rational(whole)}{'' if root.startswith('-') else '+'}{root}"


def polynomial(coefficients: Sequence[int], symbol: str = "x") -> str:
    """A polynomial, highest power first in the arguments and in the text."""
    text = ""
    for power, factor in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
        if factor == 0:
            continue
        sign = "-" if factor < 0 else "+" if text else ""
        monomial = "" if power == 0 else symbol if power == 1 else f"{symbol}^{{{power}}}"
        size = "" if abs(factor) == 1 and monomial else str(abs(factor))
        text += f"{sign}{size}{monomial}"
    return text or "0"


def pair(first: int, second: int) -> str:
    """An ordered pair."""
    return f"({first}, {second})"


def listed(*values: int) -> str:
    """Different numbers, ascending, between commas."""
    return ", ".join(map(str, sorted(set(values))))


def in_base(number: int, base: int) -> str:
    """The digits of a positive number in a base up to ten."""
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = str(digit) + digits
    return digits
