"""Single values: an expression with its currency, percent sign, degree sign, scale and unit.

Called by `reading.py` for what is no list, relation, set or bracket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from prime_verifier_math import tree
from prime_verifier_math.answers import Answer, Listing, Value
from prime_verifier_math.bounds import Unreadable
from prime_verifier_math.expressions import parse_expression
from prime_verifier_math.splitting import depth_change, spelled
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Node, Num
from prime_verifier_math.units import (
    _LETTERS,
    CURRENCIES,
    DEGREE,
    Unit,
    known_word,
    parse_unit,
    scale_of,
)
from prime_verifier_math.vocabulary import FUNCTIONS, words
from prime_verifier_math.wording import EMPTY, plain

# words of a remark: what stands behind the number says something of it
_NO_UNIT = words(
    "is are was were isn aren not no or if but maybe perhaps possibly otherwise unless wrong "
    "incorrect false else never when though although instead either neither nor factorial"
)
_LETTERS_ONLY = re.compile(r"[a-z]+")


def read_value(made: Sequence[Token]) -> Answer:
    """The value of tokens; raises `Unreadable` where they are no value."""
    made = list(made)
    if len(made) == 1 and made[0].is_cmd("emptyset"):
        return Listing((), "set")
    if plain(spelled(made)).casefold() in EMPTY:
        return Listing((), "set")
    made, currency = _currency(made)
    compound = _compound(made)
    if compound is not None:
        return compound
    made, unit_text, degree, percent = _suffix(made)
    scale, unit_text = scale_of(unit_text)
    if unit_text.lower() in ("percent", "per cent", "percentage", "percentage points"):
        percent, unit_text = True, ""
    if not made:
        raise Unreadable("a unit without a number")
    said = _LETTERS_ONLY.findall(unit_text.lower())
    if not _NO_UNIT.isdisjoint(said) or said[:1] in (["squared"], ["cubed"]):
        raise Unreadable("a remark, not a unit")
    unit = parse_unit(unit_text)
    if degree:
        unit = _temperature(unit_text) or (DEGREE if unit is None else None)
        if unit is None:
            raise Unreadable("a degree and another unit")
    if currency is not None:
        unit = currency if unit is None or unit.dimensions == currency.dimensions else unit
    maybe = _spaced_letter(made) if unit is None and not percent else None
    node = parse_expression(made)
    if scale != 1:
        node = tree.multiply(node, tree.integer(scale))
    if percent:
        node = tree.multiply(node, Num(Fraction(1, 100)))
    return expand_signs(node, lambda one: Value(one, unit, percent, False, maybe))


def expand_signs(node: Node, make: object) -> Answer:
    """A plus-minus is a list of two values."""
    assert callable(make)
    if not tree.has_signs(node):
        answer: Answer = make(node)
        return answer
    both = (make(tree.replace_signs(node, 1)), make(tree.replace_signs(node, -1)))
    return Listing(both, "pm")


_CODES = {"USD": "$", "EUR": "euro", "GBP": "pounds", "RS": "rupee", "INR": "rupee", "JPY": "yen"}


def _currency(made: list[Token]) -> tuple[list[Token], Unit | None]:
    """A currency sign in front of the number (behind its sign) or behind it."""
    for place in (0, 1):
        if (
            place < len(made)
            and made[place].kind == "cmd"
            and made[place].text in CURRENCIES
            and (place == 0 or made[0].is_op("+-"))
        ):
            return made[:place] + made[place + 1 :], CURRENCIES[made[place].text]
    if len(made) > 1 and made[-1].kind == "cmd" and made[-1].text in CURRENCIES:
        return made[:-1], CURRENCIES[made[-1].text]
    if len(made) > 1 and made[0].kind in ("word", "text"):
        code = made[0].text.strip().rstrip(".").upper()
        if code == "US":
            return _currency(made[1:])
        if code in _CODES:
            rest = made[2:] if made[1].is_op(".") else made[1:]
            return rest, CURRENCIES[_CODES[code]]
    return made, None


def _suffix(made: list[Token]) -> tuple[list[Token], str, bool, bool]:
    """Split off what stands behind the expression: unit text, degree sign, percent sign."""
    if made and (made[-1].is_cmd("%") or made[-1].is_op("%")):
        return made[:-1], "", False, True
    made = _flat_unit_fraction(made)
    start = _unit_start(made)
    unit_text = _unit_text(made[start:])
    made = made[:start]
    if made and (made[-1].is_cmd("%") or made[-1].is_op("%")) and not unit_text:
        return made[:-1], "", False, True
    if any(token.kind == "cmd" and token.text in FUNCTIONS for token in made):
        return made, unit_text, False, False  # sin 45 degrees: the degree is the argument's
    if made and made[-1].is_cmd("degree"):
        return made[:-1], unit_text, True, False
    for tail in (
        ("^", "circ"),
        ("^", "degree"),
        ("^", "{", "circ", "}"),
        ("^", "{", "degree", "}"),
    ):
        if tuple(token.text for token in made[-len(tail) :]) == tail:
            return made[: -len(tail)], unit_text, True, False
    if len(made) > 2 and made[-1].kind == "let" and made[-1].text in "CF":
        inner, _, degree, _ = _suffix(made[:-1])
        if degree:
            return inner, made[-1].text, True, False
    return made, unit_text, False, False


def _flat_unit_fraction(made: list[Token]) -> list[Token]:
    """A last fraction of texts is one unit: \\frac{\\text{m}}{\\text{s}} is m/s."""
    if len(made) > 7 and made[-7].is_cmd("frac") and made[-5].kind == made[-2].kind == "text":
        return [*made[:-7], Token("text", f"{made[-5].text} / {made[-2].text}", True)]
    return made


def _unit_start(made: Sequence[Token]) -> int:
    """Where the unit begins: the first text or unit word at the top behind a value."""
    depth = 0
    for index, token in enumerate(made):
        depth += depth_change(token)
        if depth or index == 0:
            continue
        if (token.kind == "text" and _names_unit(token.text)) or (
            token.kind == "word" and _is_unit_word(token)
        ):
            if _all_unitish(made[index:]):
                return index
            if token.kind == "text":
                raise Unreadable("words inside a value")
    return len(made)


def _names_unit(text: str) -> bool:
    """Whether upright text is a unit: any words, but no single upright constant or symbol."""
    name = text.strip()
    return len(name) > 1 or name in _LETTERS


def _is_unit_word(token: Token) -> bool:
    """Bare words behind a number: known units, or plain words set off by a space."""
    return known_word(token.text) or (token.space and len(token.text) >= 4)


def _all_unitish(made: Sequence[Token]) -> bool:
    """Names of units, their exponents, slashes; a number counts as an exponent alone."""
    for before, token in zip([None, *made[:-1]], made, strict=True):
        if token.kind == "num":
            if before is None or not before.is_op("^{-"):
                return False
        elif token.kind not in ("text", "word", "let") and not (
            token.is_op("/^{}.-()") or token.is_cmd("cdot", "times")
        ):
            return False
    return True


def _unit_text(made: Sequence[Token]) -> str:
    said = " ".join("*" if token.is_cmd("cdot", "times") else token.text for token in made)
    return " ".join(said.split())


def _temperature(text: str) -> Unit | None:
    """Degrees Celsius and Fahrenheit."""
    name = text.strip().strip(".").lower()
    return parse_unit({"c": "celsius", "f": "fahrenheit"}.get(name, name)) if name else None


def _spaced_letter(made: Sequence[Token]) -> tuple[Node, Unit] | None:
    """`12 m`: a number, a space and a letter that is also a unit's abbreviation."""
    if len(made) < 2 or made[-1].kind != "let" or not made[-1].space:
        return None
    if made[-1].text not in _LETTERS or made[-2].kind != "num":
        return None
    unit = parse_unit(made[-1].text)
    try:
        node = parse_expression(made[:-1])
    except Unreadable:
        return None
    return (node, unit) if unit is not None and not tree.symbols(node) else None


def _compound(made: Sequence[Token]) -> Value | None:
    """`1 hour 30 minutes`: numbers with units of one dimension, added up."""
    segments: list[tuple[list[Token], list[Token]]] = []
    for token in made:
        if token.kind in ("text", "word"):
            if not segments or not segments[-1][0]:
                return None
            segments[-1][1].append(token)
        elif token.kind == "num" or token.is_op("./{}") or token.is_cmd("frac"):
            if not segments or segments[-1][1]:
                segments.append(([], []))
            segments[-1][0].append(token)
        else:
            return None
    if len(segments) < 2 or not segments[-1][1]:
        return None
    total = Fraction(0)
    first: Unit | None = None
    for number, names in segments:
        unit = parse_unit(spelled(names))
        node = parse_expression(number)
        if unit is None or not unit.measured or not isinstance(node, Num):
            return None
        first = first or unit
        if unit.dimensions != first.dimensions:
            return None
        total += node.value * unit.factor
    return Value(Num(total / first.factor), first) if first is not None else None


def summed(items: Sequence[Answer]) -> Value | None:
    """`5 hours and 30 minutes`: quantities of one dimension in ever smaller units are one."""
    total = Fraction(0)
    last: Unit | None = None
    first: Unit | None = None
    for item in items:
        if not isinstance(item, Value) or not isinstance(item.node, Num):
            return None
        unit = item.unit
        if unit is None or not unit.measured:
            return None
        if last is not None and (unit.dimensions != last.dimensions or unit.factor >= last.factor):
            return None
        first, last = first or unit, unit
        total += item.node.value * unit.factor
    return None if first is None else Value(Num(total / first.factor), first)
