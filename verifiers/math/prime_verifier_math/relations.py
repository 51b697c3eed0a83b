"""Equations and inequalities: labels, chains of equals, intervals from conditions on one variable.

`read_relation` is called by `reading.py` where a relation stands at the top level; a chain of
numbers that aren't equal is a contradiction and equal to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_verifier_math import tree
from prime_verifier_math.answers import (
    Answer,
    Equation,
    Listing,
    Opaque,
    Ordered,
    Region,
    Value,
)
from prime_verifier_math.bounds import OverBound, Steps, Unreadable
from prime_verifier_math.equality import same_value
from prime_verifier_math.expressions import parse_expression
from prime_verifier_math.forms import node_form
from prime_verifier_math.inequalities import read_inequality, read_unequal
from prime_verifier_math.regions import as_region
from prime_verifier_math.splitting import cut, relation, spelled, whole_bracket
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Call, Node, Num, Pow, Sym

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NAMING = frozenset(
    (
        "angle",
        "triangle",
        "overline",
        "vec",
        "mathbf",
        "hat",
        "widehat",
        "overrightarrow",
        "mathcal",
        "text",
        "measuredangle",
        "widetilde",
    )
)


def read_relation(made: Sequence[Token]) -> Answer | None:
    """The typed answer of a relation; None where the reader should go on."""
    pieces = cut(made, relation)
    names = pieces.separators
    if not names:
        return None
    if len(names) > 12:
        raise OverBound("too many relations")
    if not pieces.parts[0]:
        return _marked(names, pieces.parts)
    if any(not part for part in pieces.parts):
        raise Unreadable("a relation without a side")
    kinds = set(names)
    if kinds <= {"=", "~"}:
        return _chain(pieces.parts, names)
    if names == ["in"]:
        return _membership(pieces.parts)
    if kinds <= {"<", "<=", ">", ">="}:
        return read_inequality(pieces.parts, names)
    if names == ["!="]:
        return read_unequal(pieces.parts)
    raise Unreadable("a relation of another kind")


def _marked(names: list[str], parts: list[list[Token]]) -> Answer:
    """`\\approx 8.24` is a rounded value, `= 5` a value."""
    from prime_verifier_math.reading import read_tokens

    if names[0] not in ("~", "=") or len(names) > 1:
        raise Unreadable("a relation without a left side")
    answer = read_tokens(parts[1])
    if names[0] == "~" and isinstance(answer, Value):
        return Value(answer.node, answer.unit, answer.percent, True)
    return answer


def _try(made: Sequence[Token]) -> Node | None:
    try:
        return parse_expression(made)
    except Unreadable:
        return None


def _chain(parts: list[list[Token]], names: list[str]) -> Answer:
    """Sides joined by = and approximately: a label first, then equal values."""
    from prime_verifier_math.reading import read_tokens

    left = _try(parts[0])
    label, argument = _label(parts[0], left)
    if len(parts) == 2 and names == ["="]:
        return _equation(parts, left, label, argument)
    values = [read_tokens(part) for part in (parts[1:] if label is not None else parts)]
    joints = names[1:] if label is not None else names
    steps = Steps()
    for first, second, joint in zip(values, values[1:], joints, strict=False):
        if not _agree(first, second, joint, steps):
            return Opaque("", "a chain of values that aren't equal")
    exact = values[0] if "~" in joints or len(values) == 1 else values[-1]
    if len(values) == 1 and names[0] == "~" and isinstance(exact, Value):
        exact = Value(exact.node, exact.unit, exact.percent, True)
    if label is None:
        return exact
    node = exact.node if isinstance(exact, Value) else None
    sides = (left, node) if left is not None and node is not None else None
    return Equation(label, exact, sides, argument)


def _agree(first: Answer, second: Answer, joint: str, steps: Steps) -> bool:
    """Whether neighbours of a chain are equal, or near where it says approximately."""
    from prime_verifier_math.comparison import same_answer

    if joint == "=":
        return same_answer(first, second, steps)[0]
    if isinstance(first, Value) and isinstance(second, Value):
        return rounds_to(first.node, second.node, steps)
    return False


def rounds_to(exact: Node, rounded: Node, steps: Steps) -> bool:
    """Whether a decimal is within one unit of its last written place."""
    from prime_verifier_math.numeric import approximate

    if tree.symbols(exact) or not isinstance(rounded, Num):
        return same_value(exact, rounded, steps)[0]
    value = approximate(exact, steps)
    if value is None:
        return False
    places = rounded.places or 0
    return abs(value - float(rounded.value)) <= 0.9999 * 10.0 ** -min(places, 15)


def _equation(
    parts: list[list[Token]], left: Node | None, label: str | None, argument: str | None
) -> Answer:
    """Two sides and one equals sign."""
    from prime_verifier_math.reading import read_tokens

    right_node = _try(parts[1])
    sides = (left, right_node) if left is not None and right_node is not None else None
    if label is not None:
        return Equation(label, read_tokens(parts[1]), sides, argument)
    if (
        right_node is not None
        and isinstance(right_node, Sym)
        and (left is None or right_node.name not in tree.symbols(left))
    ):
        return Equation(right_node.name, read_tokens(parts[0]), sides)
    if sides is None:
        first, second = read_tokens(parts[0]), read_tokens(parts[1])
        if _agree(first, second, "=", Steps()):
            return second
        return Opaque("", "two sides that aren't equal")
    if not tree.symbols(sides[0]) and not tree.symbols(sides[1]):
        # percent signs and units may stand on one side: 0.56 = 56%
        if _agree(read_tokens(parts[0]), read_tokens(parts[1]), "=", Steps()):
            return read_tokens(parts[1])
        return Opaque("", "a false equation")
    return Equation(None, Value(sides[1]), sides)


def _label(made: Sequence[Token], node: Node | None) -> tuple[str | None, str | None]:
    """The name on the left of an equals sign, and the variable of f(x); None for no name."""
    applied = _applied_letter(made)
    if applied is not None:
        return applied
    if (any(token.kind in ("text", "word") or token.text in _NAMING for token in made)) and not any(
        token.kind == "num" and not token.space for token in made
    ):
        if node is None or not (_has_numbers(node) or _small_product(made)):
            return spelled(made), None
        return ("compound", None) if not _has_numbers(node) else (None, None)
    if node is None:
        return _other_label(made)
    if isinstance(node, Sym):
        return node.name, None
    if isinstance(node, Call) and node.name == "abs" and not _has_numbers(node):
        return "abs", None
    if len(tree.symbols(node)) >= 2 and not _has_numbers(node):
        return "compound", None
    return None, None


def _small_product(made: Sequence[Token]) -> bool:
    """Small letters side by side, as ab: a product; AB is a name, of a segment say."""
    return all(token.kind in ("word", "let") and token.text.islower() for token in made)


def _applied_letter(made: Sequence[Token]) -> tuple[str, str | None] | None:
    """A letter applied to what stands in parentheses, as a whole side: its name and variable.

    f(x) and P(x) are functions, since a product would be written Px; f(2), a(3), P(A) and P(X > 2)
    are values of one, each its own name.
    """
    primes = next((i for i, token in enumerate(made[1:]) if not token.is_op("'")), 0)
    made = [*made[:1], *made[1 + primes :]]
    inverse = [token.text for token in made[1:6]] == ["^", "{", "-", "1", "}"]
    if inverse and made[0].text in "fghFGH":
        made = [made[0], *made[6:]]
    if len(made) < 4 or made[0].kind != "let" or not made[1].is_op("(") or made[1].space:
        return None
    name, inner = made[0].text + "'" * primes + "^-1" * inverse, made[2:-1]
    if not whole_bracket(made[1:]) or name in ("i", "e"):
        return None
    if len(inner) == 1 and inner[0].kind == "let" and inner[0].text.islower():
        return (name + "()", inner[0].text) if inner[0].text != name else None
    argument = _try(inner)
    if argument is not None and not tree.symbols(argument):
        return f"{name}({node_form(argument)})", None
    if name[0].isupper() and any(token.kind == "let" and token.text.isupper() for token in inner):
        return spelled(made).replace(" ", ""), None
    node = _try(made)
    if isinstance(node, Call) and node.name.startswith("fn:"):
        return f"{name}({', '.join(node_form(one) for one in node.args)})", None
    return None


def _other_label(made: Sequence[Token]) -> tuple[str | None, str | None]:
    """A tuple of names such as (x, y), or P(A) and the like."""
    if (
        all(token.kind in ("let", "op", "cmd") for token in made)
        and not any(token.is_op("+-*/^") for token in made)
        and any(token.kind == "let" for token in made)
    ):
        return spelled(made).replace(" ", ""), None
    return None, None


def _has_numbers(node: Node) -> bool:
    """Whether numbers stand in it, other than as exponents and signs."""
    if isinstance(node, Num):
        return node.value != -1
    if isinstance(node, Pow):
        return _has_numbers(node.base)
    return any(_has_numbers(child) for child in tree.children(node))


def _membership(parts: list[list[Token]]) -> Answer:
    """x in a set: the set, with its variable."""
    from prime_verifier_math.reading import read_tokens

    right = read_tokens(parts[1])
    name = spelled(parts[0]).replace(" ", "")
    region = as_region(right) if isinstance(right, Ordered | Region) else None
    if region is not None:
        return Region(region.pieces, name)
    if isinstance(right, Listing):
        return Equation(name, right, None)
    raise Unreadable("membership in what is no set")
