"""Monomials and polynomials over generators, with exact rational coefficients.

A generator is a prime under a root, i, pi, e, a variable, or an opaque function value. Products of
prime roots, i, pi and variables are linearly independent over the rationals, so a polynomial in
these is zero exactly where it has no terms; `exact.py` builds on that.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from prime_verifier_math.bounds import MAX_BITS, OverBound, Steps

Generator: TypeAlias = tuple[str, str]  # kind (p prime, i, c constant, s symbol, f opaque), name
Monomial: TypeAlias = tuple[tuple[Generator, Fraction], ...]  # sorted, exponents not 0
Polynomial: TypeAlias = dict[Monomial, Fraction]

UNIT: Monomial = ()
IMAGINARY: Generator = ("i", "")


def constant(value: Fraction) -> Polynomial:
    """The polynomial of one rational number."""
    return {UNIT: value} if value else {}


def generator(name: Generator, exponent: Fraction = Fraction(1)) -> Polynomial:
    """The polynomial of one generator."""
    return {((name, exponent),): Fraction(1)}


def add(a: Polynomial, b: Polynomial, steps: Steps, sign: int = 1) -> Polynomial:
    """a + sign * b."""
    steps.spend(len(b) + 1)
    total = dict(a)
    for monomial, coefficient in b.items():
        value = total.get(monomial, Fraction(0)) + sign * coefficient
        if value:
            total[monomial] = value
        else:
            total.pop(monomial, None)
    return total


def multiply(a: Polynomial, b: Polynomial, steps: Steps) -> Polynomial:
    """a * b, with i * i = -1 and whole powers of primes carried into the coefficient."""
    steps.spend(len(a) * len(b) + 1)
    product: Polynomial = {}
    for one, left in a.items():
        for two, right in b.items():
            monomial, carry = _join(one, two)
            value = product.get(monomial, Fraction(0)) + left * right * carry
            if _bits(value) > MAX_BITS:
                raise OverBound("a coefficient grows too long")
            if value:
                product[monomial] = value
            else:
                product.pop(monomial, None)
    return product


def power(a: Polynomial, exponent: int, steps: Steps) -> Polynomial:
    """a to a positive integer, by squaring."""
    result = constant(Fraction(1))
    base = a
    while exponent:
        if exponent & 1:
            result = multiply(result, base, steps)
        exponent >>= 1
        if exponent:
            base = multiply(base, base, steps)
    return result


def monomial_power(monomial: Monomial, exponent: Fraction) -> tuple[Monomial, Fraction]:
    """A monomial to any rational exponent, for generators where that is sound; and the carry."""
    made: Monomial = tuple((name, value * exponent) for name, value in monomial)
    return _reduced(dict(made))


def _join(one: Monomial, two: Monomial) -> tuple[Monomial, Fraction]:
    if not one:
        return two, _ONE
    if not two:
        return one, _ONE
    exponents = dict(one)
    for name, value in two:
        exponents[name] = exponents.get(name, _ZERO) + value
    return _reduced(exponents)


_ZERO, _ONE = Fraction(0), Fraction(1)


def _reduced(exponents: dict[Generator, Fraction]) -> tuple[Monomial, Fraction]:
    """Sort, drop zeros, bring primes to exponents in [0, 1) and i to 0 or 1."""
    carry = _ONE
    kept: list[tuple[Generator, Fraction]] = []
    for name, value in exponents.items():
        left = value
        if name[0] == "p":
            whole = left.numerator // left.denominator
            if whole:
                if abs(whole) * int(name[1]).bit_length() > MAX_BITS:
                    raise OverBound("a power grows too long")
                carry *= Fraction(int(name[1])) ** whole
                left -= whole
        elif name[0] == "i":
            turns = int(left) % 4
            carry *= -1 if turns >= 2 else 1
            left = Fraction(turns % 2)
        if left:
            kept.append((name, left))
    kept.sort()
    return tuple(kept), carry


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()
