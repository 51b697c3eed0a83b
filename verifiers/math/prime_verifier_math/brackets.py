"""What stands in brackets or between colons: tuples, intervals, sets, ratios, times.

Called by `reading.py` for an answer that is one bracket, or has colons at the top.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_verifier_math.answers import Answer, Choice, Colon, Equation, Listing, Ordered
from prime_verifier_math.bounds import MAX_ITEMS, OverBound, Unreadable
from prime_verifier_math.expressions import parse_expression
from prime_verifier_math.reading import read_tokens
from prime_verifier_math.splitting import cut, relation, spelled
from prime_verifier_math.tokens import Token


def read_bracket(made: Sequence[Token]) -> Answer | None:
    """A tuple, an interval, a set, or a choice in parentheses; None for a bracketed expression."""
    opening, closing = made[0], made[-1]
    inner = made[1:-1]
    if opening.is_cmd("{"):
        return _read_set(inner)
    pieces = cut(inner, lambda token: "," if token.is_op(",;") else None)
    if len(pieces.parts) > 1:
        if len(pieces.parts) > MAX_ITEMS:
            raise OverBound("too many items")
        items: list[Answer] = []
        dots: list[int] = []
        for part in pieces.parts:
            if part and all(token.is_cmd("ldots") for token in part):
                dots.append(len(items))
            else:
                items.append(read_tokens(part))
        left = "<" if opening.text == "langle" else opening.text
        right = ">" if closing.text == "rangle" else closing.text
        if dots:
            return Listing(tuple(items), "list", tuple(dots))
        return Ordered(left, tuple(items), right)
    if len(inner) == 1 and opening.is_op("(") and inner[0].kind in ("let", "text"):
        letter = inner[0].text.strip()
        if len(letter) == 1 and letter.isalpha():
            return Choice(letter.upper())
    if opening.is_op("(") and closing.is_op(")"):
        return read_tokens(inner)
    if opening.is_op("[") and closing.is_op("]"):
        return Ordered("[", (read_tokens(inner),), "]")
    return None


def _read_set(inner: Sequence[Token]) -> Answer:
    """The members between set braces, or the condition of a set builder."""
    if not inner:
        return Listing((), "set")
    builder = cut(
        inner,
        lambda t: "|" if t.is_op("|:") or t.is_cmd("mid", "|", ":") else None,
    )
    if len(builder.parts) == 2 and any(relation(token) for token in builder.parts[1]):
        return read_tokens(builder.parts[1])
    members = read_tokens(inner)
    if isinstance(members, Listing) and members.kind != "set":
        return Listing(members.items, "list" if members.dots else "set", members.dots)
    if isinstance(members, Equation):
        members = members.right
        if isinstance(members, Listing):
            return Listing(members.items, "set")
    return Listing((members,), "set")


_HALVES = {"am": "am", "pm": "pm"}


def read_colon(parts: list[list[Token]]) -> Answer:
    """A time of day or a ratio."""
    half = ""
    last = parts[-1]
    start = next(
        (i for i, token in enumerate(last) if i and token.kind in ("text", "word", "let")),
        len(last),
    )
    tail = spelled(last[start:]).lower().replace(".", "").replace(" ", "")
    if tail in _HALVES:
        half = _HALVES[tail]
        parts = [*parts[:-1], last[:start]]
    if any(not part for part in parts) or len(parts) > 6:
        raise Unreadable("a colon without numbers around it")
    words = [token for part in parts for token in part if token.kind == "text"]
    if words:
        raise Unreadable("a colon between words")
    return Colon(tuple(parse_expression(part) for part in parts), half)
