"""Names of values: when two mean one thing, when they can't.

Called by `comparison.py` for single equations and by `containers.py` for lists of them.
"""

from __future__ import annotations

import re

_SYMBOL = re.compile(
    r"\\[A-Za-z]+(?:_\w+)?|"
    r"[A-Za-z]_(?:\d+|\w{1,3}|\{\w{1,3}[+-]\w{1,3}\}|\{[A-Z]{2,4}\})"
)
_POINTS = re.compile(
    r"(?P<of>angle |triangle |\[|overline\{)?(?P<points>[A-Z]{2,4}|(?<=angle )[A-Z])[\]}]?"
)
_OF = {"overline{": "", "[": "triangle "}


def key(name: str) -> str:
    """One writing for names that mean one thing: AB and BA, `Mean` and `mean`."""
    found = _POINTS.fullmatch(name)
    if found is None:
        return " ".join(name.split()).lower()
    points = found["points"]
    of = found["of"] or ""
    return f"{_OF.get(of, of)}{min(points, points[::-1])}"


def other_symbol(one: str, other: str) -> bool:
    """Whether both names are symbols, such as \\alpha, a_10 and AB, and of different things.

    Names in words often say one thing differently.
    """
    symbols = all(_SYMBOL.fullmatch(name) or _POINTS.fullmatch(name) for name in (one, other))
    return symbols and key(one) != key(other)


def alike(one: str, other: str) -> bool:
    """Whether one name in words says what the other does: `number of pears`, `pears`."""
    words = [set(re.findall(r"[a-z]{3,}", name.lower())) for name in (one, other)]
    return all(words) and (words[0] <= words[1] or words[1] <= words[0])
