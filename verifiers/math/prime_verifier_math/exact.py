"""Exact values: an expression as a quotient of polynomials in independent generators.

`reduce_node` reads a tree; `difference` decides equality of two readings: equal for certain,
different for certain, or open where an opaque function value is left (numeric.py goes on then).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, isqrt

from prime_verifier_math import monomials
from prime_verifier_math.bounds import MAX_BITS, OverBound, Steps, Undefined
from prime_verifier_math.monomials import IMAGINARY, UNIT, Polynomial, constant
from prime_verifier_math.tree import Add, Call, Const, Mul, Node, Num, Pow, Sym

TRIAL_LIMIT = 2_000  # primes are divided out of a radicand up to here


@dataclass(frozen=True, slots=True)
class Quotient:
    """top / bottom; bottom is never the zero polynomial."""

    top: Polynomial
    bottom: Polynomial

    def rational(self) -> Fraction | None:
        """The value where it is a rational number."""
        if len(self.bottom) != 1 or UNIT not in self.bottom or len(self.top) > 1:
            return None
        if not self.top:
            return Fraction(0)
        return self.top[UNIT] / self.bottom[UNIT] if UNIT in self.top else None


_UNITY = constant(Fraction(1))


def reduce_node(node: Node, steps: Steps) -> Quotient:
    """The exact reading of a tree; raises `OverBound` or `Undefined`."""
    steps.spend()
    if isinstance(node, Num):
        return Quotient(constant(node.value), _UNITY)
    if isinstance(node, Sym):
        return Quotient(monomials.generator(("s", node.name)), _UNITY)
    if isinstance(node, Const):
        if node.name == "inf":
            raise Undefined("infinity in an expression")
        name = IMAGINARY if node.name == "i" else ("c", node.name)
        return Quotient(monomials.generator(name), _UNITY)
    if isinstance(node, Add):
        total = Quotient({}, _UNITY)
        for term in node.terms:
            total = _add(total, reduce_node(term, steps), steps)
        return total
    if isinstance(node, Mul):
        product = Quotient(_UNITY, _UNITY)
        for factor in node.factors:
            product = _multiply(product, reduce_node(factor, steps), steps)
        return product
    if isinstance(node, Pow):
        return _power(node, steps)
    return _call(node, steps)


def difference(a: Quotient, b: Quotient, steps: Steps) -> str:
    """ "equal", "different" or "open"."""
    left = monomials.multiply(a.top, b.bottom, steps)
    right = monomials.multiply(b.top, a.bottom, steps)
    rest = monomials.add(left, right, steps, sign=-1)
    if not rest:
        return "equal"
    return "open" if is_open(rest) else "different"


def is_open(polynomial: Polynomial) -> bool:
    """Whether generators stand in it that may depend on each other."""
    names = {name for monomial in polynomial for name, _ in monomial}
    if ("c", "e") in names and ("c", "pi") in names:
        return True
    return any(kind == "f" or (kind == "p" and not _is_prime(int(p))) for kind, p in names)


def _is_prime(value: int) -> bool:
    """Whether a generator below the square of the trial limit is a prime; larger ones are open."""
    return value < TRIAL_LIMIT * TRIAL_LIMIT


def _add(a: Quotient, b: Quotient, steps: Steps) -> Quotient:
    if a.bottom == b.bottom:
        return Quotient(monomials.add(a.top, b.top, steps), a.bottom)
    return Quotient(
        monomials.add(
            monomials.multiply(a.top, b.bottom, steps),
            monomials.multiply(b.top, a.bottom, steps),
            steps,
        ),
        monomials.multiply(a.bottom, b.bottom, steps),
    )


def _multiply(a: Quotient, b: Quotient, steps: Steps) -> Quotient:
    return Quotient(
        monomials.multiply(a.top, b.top, steps), monomials.multiply(a.bottom, b.bottom, steps)
    )


def _inverse(a: Quotient) -> Quotient:
    if not a.top:
        raise Undefined("division by zero")
    if len(a.top) == 1:
        # a single term is inverted in place, so that denominators stay short
        ((monomial, coefficient),) = a.top.items()
        inverted, carry = monomials.monomial_power(monomial, Fraction(-1))
        return _scaled(a.bottom, inverted, carry / coefficient)
    return Quotient(a.bottom, a.top)


def _scaled(top: Polynomial, monomial: monomials.Monomial, factor: Fraction) -> Quotient:
    return Quotient(monomials.multiply(top, {monomial: factor}, Steps()), _UNITY)


def _power(node: Pow, steps: Steps) -> Quotient:
    base = reduce_node(node.base, steps)
    exponent = reduce_node(node.exponent, steps).rational()
    if exponent is None:
        return _opaque(node, steps)
    if exponent.denominator != 1:
        return rational_power(base, exponent, steps) or _opaque(node, steps)
    count = int(exponent)
    if count == 0:
        if not base.top:
            raise Undefined("0^0")
        return Quotient(_UNITY, _UNITY)
    if count < 0:
        base, count = _inverse(base), -count
    for polynomial in (base.top, base.bottom):
        if len(polynomial) > 1 and (count > 64 or len(polynomial) * count > 400):
            return _opaque(node, steps)
        if _magnitude(polynomial) * count > MAX_BITS:
            raise OverBound("a power grows too long")
    return Quotient(
        monomials.power(base.top, count, steps), monomials.power(base.bottom, count, steps)
    )


def _magnitude(polynomial: Polynomial) -> int:
    """Bits of the longest coefficient; a bound on how a power grows."""
    return max(
        (
            max(abs(c.numerator).bit_length(), c.denominator.bit_length()) - (abs(c) == 1)
            for c in polynomial.values()
        ),
        default=0,
    )


def rational_power(base: Quotient, exponent: Fraction, steps: Steps) -> Quotient | None:
    """A single term to a fraction; None where that can't be said exactly.

    Variables under a root count as positive. The root of a negative number of even index 2 is
    imaginary, of odd index the real root.
    """
    if len(base.top) != 1 or len(base.bottom) != 1:
        return Quotient({}, _UNITY) if not base.top and exponent > 0 else None
    ((above, top),) = base.top.items()
    ((below, bottom),) = base.bottom.items()
    names = [name for name, _ in above + below]
    if any(kind in "fi" for kind, _ in names):
        return None
    value = top / bottom
    negative = value < 0
    if negative and exponent.denominator % 2 == 0 and exponent.denominator != 2:
        return None
    result = _rational_root(abs(value), exponent, steps)
    for monomial, sign in ((above, 1), (below, -1)):
        raised, carry = monomials.monomial_power(monomial, sign * exponent)
        result = monomials.multiply(result, {raised: carry}, steps)
    if negative and exponent.denominator == 2:
        turned, carry = monomials.monomial_power(
            ((IMAGINARY, Fraction(1)),), Fraction(exponent.numerator)
        )
        result = monomials.multiply(result, {turned: carry}, steps)
    elif negative and exponent.numerator % 2:
        result = monomials.multiply(result, constant(Fraction(-1)), steps)
    return Quotient(result, _UNITY)


def _rational_root(value: Fraction, exponent: Fraction, steps: Steps) -> Polynomial:
    """A positive rational number to a fraction, as a product of prime roots."""
    exponents: dict[monomials.Generator, Fraction] = {}
    for number, sign in ((value.numerator, 1), (value.denominator, -1)):
        for prime, count in factors(number, steps).items():
            name = ("p", str(prime))
            exponents[name] = exponents.get(name, Fraction(0)) + sign * count * exponent
    result = _UNITY
    for name, power in exponents.items():
        raised, carry = monomials.monomial_power(((name, Fraction(1)),), power)
        result = monomials.multiply(result, {raised: carry}, steps)
    return result


def factors(number: int, steps: Steps) -> dict[int, int]:
    """Prime factors by trial division; what is left above the limit stays whole."""
    if number.bit_length() > 4 * 1024:
        raise OverBound("a radicand is too long")
    found: dict[int, int] = {}
    divisor = 2
    while divisor < TRIAL_LIMIT and divisor * divisor <= number:
        while number % divisor == 0:
            found[divisor] = found.get(divisor, 0) + 1
            number //= divisor
        divisor += 1 if divisor == 2 else 2
    steps.spend(divisor // 8)
    if number > 1:
        root = isqrt(number)
        while root * root == number and root > 1:
            # a square of a large number: its root is the generator
            inner = factors(root, steps)
            for prime, count in inner.items():
                found[prime] = found.get(prime, 0) + 2 * count
            return found
        found[number] = found.get(number, 0) + 1
    return found


def _call(node: Call, steps: Steps) -> Quotient:
    args = [reduce_node(arg, steps) for arg in node.args]
    if node.name == "root":
        index = args[1].rational()
        if index is not None and index.denominator == 1 and 1 <= abs(index) <= 1000:
            made = rational_power(args[0], 1 / index, steps)
            if made is not None:
                return made
        return _opaque(node, steps)
    values = [arg.rational() for arg in args]
    if all(value is not None for value in values):
        known = _known_value(node.name, [value for value in values if value is not None])
        if known is not None:
            return Quotient(constant(known), _UNITY)
    return _opaque(node, steps)


def _known_value(name: str, values: list[Fraction]) -> Fraction | None:
    """Values of integer functions at rational numbers; None where it isn't rational."""
    first = values[0]
    if name == "abs":
        return abs(first)
    if name == "sgn":
        return Fraction((first > 0) - (first < 0))
    if name == "floor":
        return Fraction(first.numerator // first.denominator)
    if name == "ceil":
        return Fraction(-(-first.numerator // first.denominator))
    if name == "factorial" and first.denominator == 1:
        if first < 0:
            raise Undefined("a negative factorial")
        if first > 1500:
            raise OverBound("a factorial grows too long")
        return Fraction(factorial(int(first)))
    if name == "binom" and first.denominator == values[1].denominator == 1:
        n, k = int(first), int(values[1])
        if n < 0 or k < 0:
            raise Undefined("a negative binomial")
        if k <= n and min(k, n - k) * n.bit_length() > MAX_BITS:
            raise OverBound("a binomial grows too long")
        return Fraction(comb(n, k))
    if name in ("ln", "log") and first == 1:
        return Fraction(0)
    if name in ("sin", "tan", "arcsin", "arctan", "sinh", "tanh") and first == 0:
        return Fraction(0)
    if name in ("cos", "cosh", "sec") and first == 0:
        return Fraction(1)
    return None


def _opaque(node: Node, steps: Steps) -> Quotient:
    """A function value that stays as it is, named by its exact arguments."""
    return Quotient(monomials.generator(("f", canonical(node, steps))), _UNITY)


def canonical(node: Node, steps: Steps) -> str:
    """A text that is equal for nodes whose exact readings are equal term by term."""
    if isinstance(node, Call):
        inner = ",".join(_text(reduce_node(arg, steps), steps) for arg in node.args)
        return f"{node.name}({inner})"
    assert isinstance(node, Pow)
    base = _text(reduce_node(node.base, steps), steps)
    return f"({base})^({_text(reduce_node(node.exponent, steps), steps)})"


def _text(value: Quotient, steps: Steps) -> str:
    steps.spend(len(value.top) + len(value.bottom))
    return f"{sorted(value.top.items())}/{sorted(value.bottom.items())}"
