"""Open ends of intervals as brackets that look outward: `[3, 8[` is [3, 8), `]3, 8[` is (3, 8).

Called by the lexer, so that parsers meet one writing of an interval.
"""

from __future__ import annotations

from prime_verifier_math.tokens import Token


def round_ends(made: list[Token]) -> list[Token]:
    """The tokens with round brackets for outward ones, where all brackets pair into intervals."""
    places = [index for index, token in enumerate(made) if token.is_op("[]")]
    if not places or len(places) % 2:
        return made
    changed = list(made)
    for start, stop in zip(places[::2], places[1::2], strict=True):
        if not _two_ends(made[start + 1 : stop]):
            return made
        if made[start].text == "]":
            changed[start] = Token("op", "(", made[start].space)
        if made[stop].text == "[":
            changed[stop] = Token("op", ")", made[stop].space)
    return changed


def _two_ends(inner: list[Token]) -> bool:
    """Whether one comma outside other brackets parts two ends."""
    depth = commas = 0
    for index, token in enumerate(inner):
        depth += token.is_op("({") - token.is_op(")}")
        if depth < 0:
            return False
        if depth == 0 and token.is_op(",;"):
            commas += 1
            if index in (0, len(inner) - 1):
                return False
    return depth == 0 and commas == 1
