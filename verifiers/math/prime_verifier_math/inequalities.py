"""Inequalities: chains in one variable become regions, others stay relations.

Called by `relations.py`; linear conditions and absolute values are solved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from prime_verifier_math import tree
from prime_verifier_math.answers import Answer, Piece, Region, Relation, Value
from prime_verifier_math.bounds import OverBound, Steps, Undefined, Unreadable
from prime_verifier_math.exact import reduce_node
from prime_verifier_math.expressions import parse_expression
from prime_verifier_math.regions import MINUS_INFINITY, complement, intersection, union
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Call, Node, Num, Sym

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def read_unequal(parts: list[list[Token]]) -> Answer:
    left, right = parse_expression(parts[0]), parse_expression(parts[1])
    if isinstance(right, Sym) and not isinstance(left, Sym):
        left, right = right, left
    if isinstance(left, Sym) and not tree.symbols(right):
        point = Region((Piece(right, True, right, True),))
        return Region(complement(point).pieces, left.name)
    return Relation(tree.add(left, tree.negate(right)), strict=True, unequal=True)


def read_inequality(parts: list[list[Token]], names: list[str]) -> Answer:
    """A chain of inequalities in one variable as a region; else one relation."""
    sides = [_bare(part) for part in parts]
    total: Region | None = None
    steps = Steps()
    for left, right, name in zip(sides[:-1], sides[1:], names, strict=True):
        region = _solved(left, right, name, steps)
        if region is None:
            if len(names) == 1:
                return _relation(left, right, name)
            raise Unreadable("a chain of inequalities in several variables")
        total = region if total is None else _both(total, region)
    assert total is not None
    return total


def _both(a: Region, b: Region) -> Region:
    if a.variable and b.variable and a.variable != b.variable:
        raise Unreadable("a chain of inequalities in several variables")
    return Region(intersection(a, b).pieces, a.variable or b.variable)


def _bare(made: Sequence[Token]) -> Node:
    """A side of an inequality; units on it are left out."""
    from prime_verifier_math.values import read_value

    answer = read_value(made)
    if not isinstance(answer, Value):
        raise Unreadable("a side that is no value")
    return answer.node


def _relation(left: Node, right: Node, name: str) -> Relation:
    if name in ("<", "<="):
        left, right = right, left
    return Relation(tree.add(left, tree.negate(right)), strict=name in ("<", ">"))


def _solved(left: Node, right: Node, name: str, steps: Steps) -> Region | None:
    """The region of a linear inequality in one variable; None where it isn't one."""
    for one, other, sign in ((left, right, name), (right, left, _FLIPPED[name])):
        variable = _variable(one)
        if variable is not None and not tree.symbols(other):
            return _half_line(variable, other, sign)
        if isinstance(one, Call) and one.name == "abs" and not tree.symbols(other):
            return _around(one.args[0], other, sign, steps)
    names = tree.symbols(left) | tree.symbols(right)
    if len(names) != 1:
        return None
    return _linear(left, right, name, next(iter(names)), steps)


def _variable(node: Node) -> str | None:
    if isinstance(node, Sym):
        return node.name
    if isinstance(node, Call) and node.name.startswith("fn:"):
        return node.name[3:] + "()"
    return None


def _half_line(variable: str, end: Node, name: str) -> Region:
    closed = "=" in name
    if name in ("<", "<="):
        return Region(
            (Piece(MINUS_INFINITY, False, end, closed and end != tree.INFINITY),), variable
        )
    return Region((Piece(end, closed and end != MINUS_INFINITY, tree.INFINITY, False),), variable)


def _around(inner: Node, end: Node, name: str, steps: Steps) -> Region | None:
    """|inner| < end as two inequalities."""
    if name in ("<", "<="):
        low = _solved(inner, tree.negate(end), ">" if name == "<" else ">=", steps)
        high = _solved(inner, end, name, steps)
        return None if low is None or high is None else intersection(low, high)
    low = _solved(inner, tree.negate(end), "<" if name == ">" else "<=", steps)
    high = _solved(inner, end, name, steps)
    if low is None or high is None:
        return None
    return union((*low.pieces, *high.pieces), low.variable)


def _linear(left: Node, right: Node, name: str, variable: str, steps: Steps) -> Region | None:
    """a x + b against 0, solved exactly for rational a and b."""
    try:
        gap = reduce_node(tree.add(left, tree.negate(right)), steps)
    except (OverBound, Undefined):
        return None
    if len(gap.bottom) != 1 or () not in gap.bottom:
        return None
    slope = offset = Fraction(0)
    for monomial, coefficient in gap.top.items():
        if monomial == ():
            offset = coefficient
        elif monomial == ((("s", variable), Fraction(1)),):
            slope = coefficient
        else:
            return None
    scale = gap.bottom[()]
    if not slope:
        return None
    if slope / scale < 0:
        name = _FLIPPED[name]
    return _half_line(variable, Num(-offset / slope), name)
