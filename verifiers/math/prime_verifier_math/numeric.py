"""Numeric evaluation at fixed points with high precision, for what exact arithmetic leaves open.

`agree` says whether two trees have one value at every point where both have a value, or None
where they have none; magnitudes are bounded before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prime_verifier_math import tree
from prime_verifier_math.bounds import OverBound, Steps, Undefined
from prime_verifier_math.tree import Add, Call, Const, Mul, Node, Num, Pow, Sym

BASE_DIGITS = 50
MAX_PLACES = 900  # digits of precision at most
MAX_LOG = 20_000.0  # natural logarithm of the largest magnitude that is computed
MAX_ANGLE = 1e9
# positive, away from small integers and from each other; the i-th symbol takes the i-th of a row
POINTS = (
    ("1.3717", "0.5823", "2.2391", "0.8117", "1.9311", "0.3719", "2.7713", "1.1293"),
    ("0.4139", "1.7321", "0.6397", "2.4731", "0.2917", "1.5217", "0.9173", "2.1031"),
    ("3.1907", "2.6173", "0.1973", "1.4519", "0.7331", "2.9137", "1.2713", "0.5381"),
    ("0.7919", "0.3307", "1.6033", "0.5009", "2.3117", "0.8861", "0.2213", "1.8311"),
)
SIGNED = tuple(
    tuple("-" + value if i % 2 == 0 else value for i, value in enumerate(row)) for row in POINTS[:2]
)
FAR = ("17.3717", "23.1123", "19.2391", "29.8117", "31.9311", "37.3719", "13.7713", "41.1293")


def agree(a: Node, b: Node, steps: Steps) -> bool | None:
    """Whether both have one value at every point; None where fewer than two points work."""
    import mpmath

    names = sorted(tree.symbols(a) | tree.symbols(b))
    if len(names) > len(POINTS[0]):
        return None
    digits = min(MAX_PLACES, BASE_DIGITS + _places(a) + _places(b))
    context = mpmath.mp.clone()
    context.dps = digits
    tolerance = context.mpf(10) ** (12 - digits)
    rows: list[tuple[str, ...]] = list(POINTS if names else POINTS[:1])
    if names and any(_has_abs(node) for node in (a, b)):
        rows.extend(SIGNED)
    tried = 0
    for row in rows:
        steps.spend(200)
        point = {name: context.mpf(value) for name, value in zip(names, row, strict=False)}
        evaluate = Evaluation(context, point, steps).value
        left, right = _safe(evaluate, a), _safe(evaluate, b)
        if left is None and right is None:
            continue
        if left is None or right is None:
            return False
        tried += 1
        scale = max(abs(left), abs(right))
        if abs(left - right) > tolerance * scale and not (
            scale < tolerance and (_vanishes(a) or _vanishes(b))
        ):
            return False
    return True if tried >= (2 if names else 1) else None


def differ_on_reals(a: Node, b: Node, steps: Steps) -> bool:
    """Whether a point with negative or far values, where both sides are real, tells them apart.

    A side counts as real only where each of its parts is: `\\sqrt{x}\\sqrt{y}` isn't for negatives.
    """
    import mpmath

    names = sorted(tree.symbols(a) | tree.symbols(b))
    if not names or len(names) > len(FAR):
        return False
    context = mpmath.mp.clone()
    context.dps = digits = min(MAX_PLACES, BASE_DIGITS + _places(a) + _places(b))
    tolerance = context.mpf(10) ** (12 - digits)
    for row in real_rows(len(names), roots=has_even_root(a) or has_even_root(b)):
        steps.spend(200)
        point = {name: context.mpf(value) for name, value in zip(names, row, strict=False)}
        evaluate = Evaluation(context, point, steps, real=True).value
        try:
            left, right = _safe(evaluate, a), _safe(evaluate, b)
        except OverBound:
            if steps.left < 0:
                raise
            continue  # too large at this point alone
        if left is None or right is None:
            continue
        scale = max(abs(left), abs(right))
        if abs(left - right) > tolerance * max(scale, 1):
            return True
    return False


def real_rows(count: int, *, roots: bool) -> list[tuple[str, ...]]:
    """All letters negative; where roots depend on signs also each one alone, and far values."""
    rows = [_negated(POINTS[0])]
    if roots:
        single = [tuple(i for i in range(count) if i == k) for k in range(count)]
        rows = [_negated(FAR), FAR, *(_negated(POINTS[0], chosen) for chosen in single), *rows]
        rows.extend(_negated(FAR, chosen) for chosen in single if count > 1)
    return rows


def _negated(row: tuple[str, ...], chosen: tuple[int, ...] | None = None) -> tuple[str, ...]:
    return tuple(
        "-" + value if chosen is None or i in chosen else value for i, value in enumerate(row)
    )


def has_even_root(node: Node) -> bool:
    """Whether an even root or an absolute value of something with letters stands in it."""
    for one in tree.walk(node):
        if isinstance(one, Call) and one.name in ("abs", "sgn"):
            return True
        if isinstance(one, Call) and one.name == "root" and tree.symbols(one.args[0]):
            index = one.args[1]
            if not isinstance(index, Num) or index.value.numerator % 2 == 0:
                return True
        if isinstance(one, Pow) and tree.symbols(one.base):
            exponent = one.exponent
            if isinstance(exponent, Num) and exponent.value.denominator % 2 == 0:
                return True
    return False


def approximate(node: Node, steps: Steps) -> float | None:
    """A real float of a constant; None where it isn't real or can't be computed."""
    import mpmath

    context = mpmath.mp.clone()
    context.dps = 30
    value = _safe(Evaluation(context, {}, steps).value, node)
    if value is None or abs(context.im(value)) > abs(value) * context.mpf("1e-20"):
        return None
    return float(context.re(value))


def _safe(evaluate: Callable[[Node], Any], node: Node) -> Any | None:
    try:
        return evaluate(node)
    except (ZeroDivisionError, ValueError, Undefined, OverflowError):
        return None


def _vanishes(node: Node) -> bool:
    """Whether it may be zero by cancellation: a literal zero, or a sum or function inside."""
    return node == tree.ZERO


def _has_abs(node: Node) -> bool:
    return any(isinstance(one, Call) and one.name in ("abs", "sgn") for one in tree.walk(node))


def _places(node: Node) -> int:
    """Digits that the literals and powers of a tree may carry."""
    total = 0
    for one in tree.walk(node):
        if isinstance(one, Num):
            value = one.value
            total += (value.numerator.bit_length() + value.denominator.bit_length()) // 3
        elif isinstance(one, Pow) and isinstance(one.exponent, Num) and isinstance(one.base, Num):
            size = abs(int(one.exponent.value))
            total += min(size, MAX_PLACES) * one.base.value.numerator.bit_length() // 3
            if total > MAX_PLACES:
                return MAX_PLACES
    return total


class Evaluation:
    """Values of trees at one point; raises `OverBound` before a value leaves its range."""

    def __init__(
        self, context: Any, point: Mapping[str, Any], steps: Steps, *, real: bool = False
    ) -> None:
        self._mp = context
        self._real = real  # whether a part that isn't real has no value
        self._point = point
        self._steps = steps
        self._cost = 1 + context.dps // 50

    def value(self, node: Node) -> Any:
        """The value, an mpf or mpc."""
        made = self._value(node)
        if self._real and isinstance(made, self._mp.mpc):
            raise Undefined("not real")
        return made

    def _value(self, node: Node) -> Any:
        self._steps.spend(self._cost)
        mp = self._mp
        if isinstance(node, Num):
            return mp.mpf(node.value.numerator) / node.value.denominator
        if isinstance(node, Sym):
            return self._point[node.name]
        if isinstance(node, Const):
            if node.name == "inf":
                raise Undefined("infinity")
            return {"pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1)}[node.name]
        if isinstance(node, Add):
            total = self.value(node.terms[0])
            for term in node.terms[1:]:
                total += self.value(term)
            return total
        if isinstance(node, Mul):
            product = self.value(node.factors[0])
            for factor in node.factors[1:]:
                product *= self.value(factor)
            return product
        if isinstance(node, Pow):
            return self._power(self.value(node.base), self.value(node.exponent), node)
        return self._call(node)

    def _power(self, base: Any, exponent: Any, node: Pow) -> Any:
        mp = self._mp
        if base == 0:
            if mp.re(exponent) <= 0:
                raise Undefined("a power of zero")
            return mp.mpf(0)
        if abs(exponent) > 1e9 or abs(exponent) * abs(mp.log(abs(base))) > MAX_LOG:
            raise OverBound("a power is too large")
        if mp.im(base) == 0 and mp.re(base) < 0 and isinstance(node.exponent, Num):
            return self._real_root(base, node.exponent)
        return mp.power(base, exponent)

    def _real_root(self, base: Any, exponent: Num) -> Any:
        """A negative number to a fraction of odd denominator is real, as roots are written."""
        top, bottom = exponent.value.numerator, exponent.value.denominator
        if bottom % 2 == 1 and bottom > 1:
            root = self._mp.power(-base, self._mp.mpf(top) / bottom)
            return -root if top % 2 else root
        return self._mp.power(base, self._mp.mpf(top) / bottom)

    def _call(self, node: Call) -> Any:
        mp = self._mp
        args = [self.value(arg) for arg in node.args]
        first = args[0]
        name = node.name
        if name == "root":
            index = node.args[1]
            if isinstance(index, Num) and index.value:
                exponent = 1 / index.value
                power = Pow(node.args[0], Num(exponent))
                return self._power(first, mp.mpf(exponent.numerator) / exponent.denominator, power)
            return self._power(first, 1 / args[1], Pow(node.args[0], node.args[1]))
        if name == "arccot" and self._real and first < 0:
            raise Undefined("two conventions")
        if name == "factorial":
            if abs(first) > 3000:
                raise OverBound("a factorial is too large")
            return mp.factorial(first)
        if name == "binom":
            if max(abs(first), abs(args[1])) > 3000:
                raise OverBound("a binomial is too large")
            return mp.binomial(first, args[1])
        if abs(first) > MAX_ANGLE and name not in ("ln", "log", "abs", "floor", "ceil", "sgn"):
            raise OverBound("an argument is too large")
        if name in ("sinh", "cosh", "tanh", "coth") and abs(first) > MAX_LOG:
            raise OverBound("an argument is too large")
        function = _FUNCTIONS.get(name)
        if function is not None:
            return getattr(mp, function)(first)
        if name == "log":
            return mp.log(first, 10)
        if name == "abs":
            return abs(first)
        if name == "sgn":
            return mp.sign(first)
        if name.startswith("fn:"):
            # an unknown function: any value will do that depends on its arguments alone
            shift = sum(map(ord, name)) * mp.mpf("0.137")
            return sum(
                mp.sin(arg * mp.mpf("0.7313") + shift * (k + 1)) for k, arg in enumerate(args)
            )
        raise Undefined(f"{name} has no value")


_FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsec": "asec",
    "arccsc": "acsc", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth",
    "arsinh": "asinh", "arcosh": "acosh", "artanh": "atanh", "ln": "ln", "floor": "floor",
    "ceil": "ceil",
}  # fmt: skip
