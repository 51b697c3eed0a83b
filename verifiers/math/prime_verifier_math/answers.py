"""The types of answers: what a gold or an extracted answer turns out to be.

Made by `reading.py`, compared by `comparison.py`; the gold's type chooses the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from prime_verifier_math.tree import Node
from prime_verifier_math.units import Unit


@dataclass(frozen=True, slots=True)
class Value:
    """A number or expression, with its unit; `approx` where it was marked as rounded."""

    node: Node
    unit: Unit | None = None
    percent: bool = False
    approx: bool = False
    maybe_unit: tuple[Node, Unit] | None = None  # `12 m`: the other reading of a lone letter


@dataclass(frozen=True, slots=True)
class Text:
    """Words, in normal form."""

    words: str
    raw: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a multiple choice, with what stands behind its letter."""

    letter: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class Boolean:
    """Yes or no, true or false."""

    value: bool


@dataclass(frozen=True, slots=True)
class Absent:
    """No value: undefined, does not exist."""


@dataclass(frozen=True, slots=True)
class Colon:
    """A ratio or a time of day: parts between colons, and am or pm."""

    parts: tuple[Node, ...]
    half: str = ""


@dataclass(frozen=True, slots=True)
class Based:
    """Digits in a base; the base is None where it isn't said."""

    digits: str
    base: int | None
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Answers side by side: kind `list` (commas), `or` (joined by or), or `set` (braces)."""

    items: tuple[Answer, ...]
    kind: str = "list"
    dots: tuple[int, ...] = ()  # positions before which an ellipsis stands


@dataclass(frozen=True, slots=True)
class Ordered:
    """A tuple, or an interval of two ends: brackets as written."""

    opening: str
    items: tuple[Answer, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval of real numbers."""

    low: Node
    low_closed: bool
    high: Node
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Region:
    """A union of intervals; `variable` where it was said of one."""

    pieces: tuple[Piece, ...]
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """An inequality in several variables or of higher degree: node > 0, or >= 0; or node != 0."""

    node: Node
    strict: bool
    unequal: bool = False


@dataclass(frozen=True, slots=True)
class Equation:
    """`label = answer`, or a true equation of two expressions.

    `label` is the left side where it only names what the right side is; `function` tells f(x).
    """

    label: str | None
    right: Answer
    sides: tuple[Node, Node] | None
    argument: str | None = None  # the x of f(x)


@dataclass(frozen=True, slots=True)
class Congruence:
    """A residue class: a residue, the modulus, and the letter that is in it or ""."""

    residue: int
    modulus: int
    name: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of entries."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """What can't be read as mathematics or words; equal only to the very same writing."""

    text: str
    reason: str


Answer: TypeAlias = Union[
    Value, Text, Choice, Boolean, Absent, Colon, Based, Listing, Ordered, Region, Relation,
    Equation, Matrix, Congruence, Opaque,
]  # fmt: skip
