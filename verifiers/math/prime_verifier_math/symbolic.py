"""The last stage: sympy on small trees that have no value at any point.

Trees are built node by node from our own; no text ever reaches sympy. Only small trees with small
numbers are taken, because sympy can't be bounded from outside.
"""

from __future__ import annotations

from typing import Any

from prime_verifier_math import tree
from prime_verifier_math.tree import Add, Call, Const, Mul, Node, Num, Pow, Sym

MAX_NODES = 40
MAX_BITS = 64


def simplifies_to_zero(a: Node, b: Node) -> bool:
    """Whether sympy says that the difference is zero; False where it can't be asked."""
    nodes = [*tree.walk(a), *tree.walk(b)]
    if len(nodes) > MAX_NODES or any(not _small(node) for node in nodes):
        return False
    import sympy

    first, second = _build(sympy, a), _build(sympy, b)
    if first is None or second is None:
        return False
    gap = sympy.expand(first - second)
    return bool(gap == 0 or sympy.simplify(gap) == 0)


def _small(node: Node) -> bool:
    if isinstance(node, Num):
        value = node.value
        return value.numerator.bit_length() < MAX_BITS and value.denominator.bit_length() < MAX_BITS
    if isinstance(node, Pow) and isinstance(node.exponent, Num):
        return abs(node.exponent.value) <= 8
    if isinstance(node, Pow):
        return isinstance(node.exponent, Sym)
    return not (isinstance(node, Call) and node.name in ("factorial", "binom"))


def _build(sympy: Any, node: Node) -> Any | None:
    if isinstance(node, Num):
        return sympy.Rational(node.value.numerator, node.value.denominator)
    if isinstance(node, Sym):
        return sympy.Symbol(node.name, positive=True)
    if isinstance(node, Const):
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}[node.name]
    if isinstance(node, Add | Mul | Pow):
        parts = [_build(sympy, child) for child in tree.children(node)]
        if any(part is None for part in parts):
            return None
        made = {Add: sympy.Add, Mul: sympy.Mul, Pow: sympy.Pow}[type(node)]
        return made(*parts)
    parts = [_build(sympy, arg) for arg in node.args]
    if any(part is None for part in parts):
        return None
    if node.name == "root":
        return sympy.Pow(parts[0], sympy.Pow(parts[1], -1))
    if node.name.startswith("fn:"):
        return sympy.Function(node.name[3:])(*parts)
    return None
