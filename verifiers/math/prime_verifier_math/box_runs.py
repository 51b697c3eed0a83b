"""Boxes that stand side by side: runs of boxes, the names in front of them, the list they make.

Called by `extraction.py`, which decides what gives way to what; all scans are linear.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from prime_verifier_math.boxes import Box

MAX_NAME = 24  # characters in front of a box that are looked at for its name
MAX_BETWEEN = 200  # characters between two boxes of one run

# what may stand between boxes that are one answer: every alternative begins with another character
_JOINS = re.compile(
    r"(?:[\s,;.$&]|\\(?:quad|qquad|,|;|\\|text\{\s*+(?:and|or)\s*+\}|\(|\)|\[|\])|and\b|or\b)*+",
    re.IGNORECASE,
)
_GREEK = (
    r"\\(?:(?:var)?(?:epsilon|theta|phi|rho|sigma)|alpha|beta|gamma|delta|zeta|eta|kappa|lambda|"
    r"mu|nu|xi|tau|chi|psi|omega)"
)
# the name of a boxed value in front of its box, where it isn't the end of an expression: 2x =
_NAMED = re.compile(
    r"(?:^|[$,;(&\[.:\n*]|\\\\|\\begin\{\w+\*?\}|[A-Za-z$,;.:*-]\s)\s*"
    rf"(?P<named>(?:[A-Z]{{2}}|[A-Za-z]|{_GREEK})'*(?:_(?:\w|\{{\w{{1,4}}\}}))?"
    r"[\s$*&]*=[\s$&]*)$"
)
# anything else that stands there as the left side of an equation
_SIDE = re.compile(r"(?P<named>[^\s,;$&*=]{1,12}[\s$*&]*=[\s$&]*)$")
_CONSTANTS = frozenset("ei")  # e = 5 isn't read as a named value


def runs(text: str, boxes: Sequence[Box]) -> list[list[Box]]:
    """The boxes in runs: neighbours with nothing but separators, and names, between them."""
    found = [[boxes[0]]]
    for one, two in itertools.pairwise(boxes):
        if side_by_side(text, one, two) or _named_beside(text, one, two):
            found[-1].append(two)
        else:
            found.append([two])
    return found


def side_by_side(text: str, one: Box, two: Box) -> bool:
    """Whether nothing but separators stands between two boxes."""
    between = text[one.end : two.start]
    return len(between) < MAX_BETWEEN and _JOINS.fullmatch(between) is not None


def _named_beside(text: str, one: Box, two: Box) -> bool:
    """Whether nothing but separators and the second's name stands between two boxes."""
    between = _unnamed(text, one, two)
    return bool(_name(text, one)) and between is not None and re.search(r"\n\s*\n", between) is None


def _unnamed(text: str, one: Box, two: Box) -> str | None:
    """The separators in front of the second box's name; None where there's no name, or more."""
    found = _NAMED.search(text[max(one.end, two.start - MAX_NAME) : two.start])
    if found is None:
        return None
    between = text[one.end : two.start - len(found["named"])]
    return between if len(between) <= MAX_NAME and _JOINS.fullmatch(between) else None


def contents(boxes: Sequence[Box]) -> list[str]:
    """What stands in the boxes."""
    return [box.content.strip() for box in boxes]


def together(boxes: Sequence[Box]) -> str:
    """The contents as a list."""
    return ", ".join(contents(boxes))


def together_named(text: str, boxes: Sequence[Box]) -> str:
    """The contents as a list, each with what stands in front as its name; "" where they have none.

    With *or* between, since nothing says that they are one answer: no tuple.
    """
    sides = [_side(text, box) for box in boxes]
    if not all(sides) or len(set(sides)) < 2 or _CONSTANTS & set(sides):
        return ""
    if any("=" in box.content for box in boxes):
        return ""
    pairs = zip(sides, contents(boxes), strict=True)
    return " or ".join(f"{side} = {content}" for side, content in pairs)


def _side(text: str, box: Box) -> str:
    """The left side in front of a box, as `2x` of `2x = `; "" where there is none."""
    front = text[max(0, box.start - MAX_NAME) : box.start]
    found = _SIDE.search(front)
    return _name(text, box) or (found["named"].strip(" $&*=\n") if found else "")


def named(text: str, boxes: Sequence[Box]) -> str:
    """`x = \\boxed{1}, y = \\boxed{2}` as one list with its names; "" where it's no such list.

    Nothing but separators may stand between the boxes, and every one has a name of its own.
    """
    names = [_name(text, box) for box in boxes]
    if not all(names) or len(set(names)) < len(names) or _CONSTANTS & set(names):
        return ""
    if any("=" in box.content for box in boxes):
        return ""
    for one, two in itertools.pairwise(boxes):
        between = _unnamed(text, one, two)
        if between is None or "or" in between.lower():
            return ""
    listed = (f"{name} = {box.content.strip()}" for name, box in zip(names, boxes, strict=True))
    return ", ".join(listed)


def named_besides(text: str, boxes: Sequence[Box], taken: Sequence[Box]) -> bool:
    """Whether a box that isn't taken has a name that none of the taken has."""
    names = {_name(text, box) for box in taken} | {""}
    return any(_name(text, box) not in names for box in boxes)


def _name(text: str, box: Box) -> str:
    """The name in front of a box, as in `x = `; "" where there is none."""
    found = _NAMED.search(text[max(0, box.start - MAX_NAME) : box.start])
    return re.sub(r"[\s=&$*]", "", found["named"]) if found else ""
