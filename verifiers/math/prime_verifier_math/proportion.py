"""The constant factor between two expressions: what makes two equations the same equation.

Exact for rational functions of generators, with roots and absolute values tried at negative values
too; at fixed points for anything else.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from prime_verifier_math import monomials, tree
from prime_verifier_math.bounds import OverBound, Steps, Undefined
from prime_verifier_math.exact import is_open, reduce_node
from prime_verifier_math.monomials import Polynomial
from prime_verifier_math.numeric import has_even_root
from prime_verifier_math.tree import Node


def factor_between(a: Node, b: Node, steps: Steps, *, signed: bool = False) -> float | None:
    """c with a = c * b for a constant c, as a float whose sign is right; None where there is none.

    Denominators are cleared first: x/2 = 1 and x = 2 are one equation, y = 12/x and xy = 12 too;
    where the sign counts (`signed`), only by numbers.
    """
    if tree.symbols(a) != tree.symbols(b):
        return None
    try:
        left, right = reduce_node(a, steps), reduce_node(b, steps)
    except (OverBound, Undefined):
        return None
    if not left.top or not right.top:
        return None
    top, other = left.top, right.top
    if not signed:
        top, other = _cleared(top, steps), _cleared(other, steps)
    elif left.bottom != right.bottom and not (_constant(left.bottom) and _constant(right.bottom)):
        return None
    found = _ratio(top, other, steps)
    if found is None and (is_open(left.top) or is_open(right.top)):
        found = _at_points(a, b, steps)
    if found is None or not (has_even_root(a) or has_even_root(b)):
        return found
    return None if _breaks_on_reals(a, b, steps) else found


def _cleared(polynomial: Polynomial, steps: Steps) -> Polynomial:
    """Without letters in denominators."""
    lowest: dict[monomials.Generator, Fraction] = {}
    for monomial in polynomial:
        for name, exponent in monomial:
            if name[0] == "s" and exponent < lowest.get(name, Fraction(0)):
                lowest[name] = exponent
    for name, exponent in lowest.items():
        polynomial = monomials.multiply(polynomial, monomials.generator(name, -exponent), steps)
    return polynomial


def _constant(polynomial: Polynomial) -> bool:
    return set(polynomial) == {monomials.UNIT}


def _ratio(a: Polynomial, b: Polynomial, steps: Steps) -> float | None:
    """a / b where that is a constant of rational numbers and roots."""
    key, coefficient = next(iter(sorted(a.items())))
    for other, value in sorted(b.items()):
        # the leading terms give the candidate; the product decides
        crossed = monomials.multiply(a, {other: value}, steps)
        back = monomials.multiply(b, {key: coefficient}, steps)
        if crossed == back and _same_variables(key, other):
            return float(coefficient / value) or None
    return None


def _same_variables(one: monomials.Monomial, two: monomials.Monomial) -> bool:
    """Whether two monomials differ in constants alone."""
    return [g for g in one if g[0][0] in "sf"] == [g for g in two if g[0][0] in "sf"]


def _breaks_on_reals(a: Node, b: Node, steps: Steps) -> bool:
    """Whether negative values, where both are real, have another factor: sqrt(y^2) isn't y."""
    import mpmath

    from prime_verifier_math.numeric import FAR, Evaluation, real_rows

    names = sorted(tree.symbols(a))
    if not names or len(names) > len(FAR):
        return False
    context = mpmath.mp.clone()
    context.dps = 40
    ratio: Any = None
    for row in real_rows(len(names), roots=True):
        steps.spend(200)
        point = {name: context.mpf(value) for name, value in zip(names, row, strict=False)}
        evaluate = Evaluation(context, point, steps, real=True).value
        try:
            found = evaluate(a) / evaluate(b)
        except (ZeroDivisionError, ValueError, Undefined, OverflowError):
            continue
        except OverBound:
            if steps.left < 0:
                raise
            continue  # too large at this point alone
        if ratio is not None and abs(found - ratio) > context.mpf("1e-25") * abs(ratio):
            return True
        ratio = found
    return False


def _at_points(a: Node, b: Node, steps: Steps) -> float | None:
    import mpmath

    from prime_verifier_math.numeric import POINTS, Evaluation

    names = sorted(tree.symbols(a))
    if not names or len(names) > len(POINTS[0]):
        return None
    context = mpmath.mp.clone()
    context.dps = 40
    ratios = []
    for row in POINTS:
        point = {name: context.mpf(value) for name, value in zip(names, row, strict=False)}
        evaluation = Evaluation(context, point, steps)
        try:
            ratios.append(evaluation.value(a) / evaluation.value(b))
        except (ZeroDivisionError, ValueError, Undefined, OverflowError):
            continue
    if len(ratios) < 3 or any(
        abs(ratio - ratios[0]) > context.mpf("1e-30") * abs(ratios[0]) for ratio in ratios
    ):
        return None
    return float(context.re(ratios[0]))
