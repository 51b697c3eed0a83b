"""The tool: exact arithmetic on a short expression that a model wrote.

Called for every turn that asks for it. Invariant: any text ends in a result or in a short reason,
in bounded time; nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from fractions import Fraction

MAX_CHARACTERS = 200
MAX_DIGITS = 40
MAX_DEPTH = 20

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([-+*/()]))", re.ASCII)
_SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-"}


class CalculatorError(ValueError):
    """The expression has no result; the message is what the model is told."""


def calculate(expression: str) -> str:
    """The value of an expression of integers, + - * / and parentheses, e.g. `8` or `7/2`.

    Raises:
        CalculatorError: it can't be read, is too long, or divides by zero.
    """
    if len(expression) > MAX_CHARACTERS:
        raise CalculatorError(f"more than {MAX_CHARACTERS} characters")
    for sign, plain in _SIGNS.items():
        expression = expression.replace(sign, plain)
    value = _Reader(_tokens(expression)).value()
    return (
        str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    )


def _tokens(expression: str) -> list[str]:
    tokens, at = [], 0
    while expression[at:].strip():
        found = _TOKEN.match(expression, at)
        if found is None:
            raise CalculatorError(f"can't read {expression[at:].strip()[:12]!r}")
        tokens.append(found.group(1) or found.group(2))
        at = found.end()
    if not tokens:
        raise CalculatorError("nothing to calculate")
    return tokens


class _Reader:
    """Reads sums of products of signed factors."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self) -> Fraction:
        found = self._sum(0)
        if self._at < len(self._tokens):
            raise CalculatorError(f"can't read {self._tokens[self._at]!r} there")
        return found

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._next()
        self._at += 1
        return token

    def _sum(self, depth: int) -> Fraction:
        total = self._product(depth)
        while self._next() in ("+", "-"):
            total = (
                total + self._product(depth)
                if self._take() == "+"
                else total - self._product(depth)
            )
        return total

    def _product(self, depth: int) -> Fraction:
        total = self._factor(depth)
        while self._next() in ("*", "/"):
            if self._take() == "*":
                total *= self._factor(depth)
                continue
            divisor = self._factor(depth)
            if not divisor:
                raise CalculatorError("division by zero")
            total /= divisor
        return total

    def _factor(self, depth: int) -> Fraction:
        if depth > MAX_DEPTH:
            raise CalculatorError(f"more than {MAX_DEPTH} levels of parentheses and signs")
        found = self._take()
        if found in ("+", "-"):
            value = self._factor(depth + 1)
            return value if found == "+" else -value
        if found == "(":
            value = self._sum(depth + 1)
            if self._take() != ")":
                raise CalculatorError("a parenthesis isn't closed")
            return value
        if not found.isdigit():
            raise CalculatorError(f"can't read {found!r} there" if found else "it ends too early")
        if len(found) > MAX_DIGITS:
            raise CalculatorError(f"a number of more than {MAX_DIGITS} digits")
        return Fraction(int(found))
