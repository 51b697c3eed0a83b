"""The expression tree: seven frozen node kinds that every later stage reads.

Made by `expressions.py` alone. Numbers are exact; nothing here is ever evaluated by Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, Union


@dataclass(frozen=True, slots=True)
class Num:
    """An exact rational literal; `places` counts its written decimals, None for no decimal."""

    value: Fraction
    places: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Num) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Sym:
    """A variable: one letter or a Greek name, with its subscript."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """pi, e, i or inf."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A sum."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mul:
    """A product."""

    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pow:
    """A power; division is a power of -1."""

    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments; `root` is (radicand, index), `pm` and `mp` are signs."""

    name: str
    args: tuple[Node, ...]


Node: TypeAlias = Union[Num, Sym, Const, Add, Mul, Pow, Call]

ZERO = Num(Fraction(0))
ONE = Num(Fraction(1))
MINUS_ONE = Num(Fraction(-1))
HALF = Num(Fraction(1, 2))
INFINITY = Const("inf")
PI = Const("pi")


def integer(value: int) -> Num:
    """The literal of an integer."""
    return Num(Fraction(value))


def add(*terms: Node) -> Node:
    """A sum; one term is itself."""
    return terms[0] if len(terms) == 1 else Add(terms)


def multiply(*factors: Node) -> Node:
    """A product; one factor is itself."""
    return factors[0] if len(factors) == 1 else Mul(factors)


def negate(node: Node) -> Node:
    """The negative; literals are negated in place."""
    if isinstance(node, Num):
        return Num(-node.value, node.places)
    return Mul((MINUS_ONE, node))


def divide(top: Node, bottom: Node) -> Node:
    """A quotient; of two literals it is a literal."""
    if isinstance(top, Num) and isinstance(bottom, Num) and bottom.value:
        return Num(top.value / bottom.value)
    return Mul((top, Pow(bottom, MINUS_ONE)))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    if isinstance(node, Add):
        return node.terms
    if isinstance(node, Mul):
        return node.factors
    if isinstance(node, Pow):
        return (node.base, node.exponent)
    if isinstance(node, Call):
        return node.args
    return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(children(one))


def symbols(node: Node) -> frozenset[str]:
    """The names of the variables."""
    return frozenset(one.name for one in walk(node) if isinstance(one, Sym))


def signed_infinity(node: Node) -> int:
    """1 for infinity, -1 for minus infinity, 0 for anything else."""
    if node == INFINITY:
        return 1
    if isinstance(node, Mul) and node.factors == (MINUS_ONE, INFINITY):
        return -1
    return 0


def has_infinity(node: Node) -> bool:
    """Whether infinity stands anywhere."""
    return any(one == INFINITY for one in walk(node))


def replace_signs(node: Node, sign: int) -> Node:
    """The node with every plus-minus read as `sign` and every minus-plus as its opposite."""
    if isinstance(node, Call) and node.name in ("pm", "mp"):
        inner = replace_signs(node.args[0], sign)
        positive = (node.name == "pm") == (sign > 0)
        return inner if positive else negate(inner)
    if isinstance(node, Add):
        return Add(tuple(replace_signs(term, sign) for term in node.terms))
    if isinstance(node, Mul):
        return Mul(tuple(replace_signs(factor, sign) for factor in node.factors))
    if isinstance(node, Pow):
        return Pow(replace_signs(node.base, sign), replace_signs(node.exponent, sign))
    if isinstance(node, Call):
        return Call(node.name, tuple(replace_signs(arg, sign) for arg in node.args))
    return node


def has_signs(node: Node) -> bool:
    """Whether a plus-minus stands anywhere."""
    return any(isinstance(one, Call) and one.name in ("pm", "mp") for one in walk(node))
