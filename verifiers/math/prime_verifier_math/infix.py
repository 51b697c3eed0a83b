"""Infix commands in front: `{3 \\over 4}` as `\\frac{3}{4}`, `{n \\choose k}` as `\\binom{n}{k}`.

Called by the lexer on whole answers, so that parsers meet one writing of a fraction.
"""

from __future__ import annotations

from prime_verifier_math.bounds import MAX_DEPTH, OverBound
from prime_verifier_math.tokens import Token

_PREFIX = {"over": "frac", "choose": "binom"}


def prefixed(made: list[Token]) -> list[Token]:
    """The tokens without infix commands; their operands reach to the ends of the group."""
    for _ in range(MAX_DEPTH):
        place = next((i for i, token in enumerate(made) if token.is_cmd(*_PREFIX)), None)
        if place is None:
            return made
        start, stop = _group(made, place)
        above, below = made[start:place], made[place + 1 : stop]
        made = [
            *made[:start],
            Token("cmd", _PREFIX[made[place].text], True),
            *_braced(above),
            *_braced(below),
            *made[stop:],
        ]
    raise OverBound("too many infix fractions")


def _braced(part: list[Token]) -> list[Token]:
    return [Token("op", "{"), *part, Token("op", "}")]


def _group(made: list[Token], place: int) -> tuple[int, int]:
    """Where the group around `place` begins and ends, without its brackets."""
    start, depth = place, 0
    while start > 0:
        before = made[start - 1]
        depth += before.is_op("}") - before.is_op("{")
        if depth < 0:
            break
        start -= 1
    stop, depth = place + 1, 0
    while stop < len(made):
        depth += made[stop].is_op("{") - made[stop].is_op("}")
        if depth < 0:
            break
        stop += 1
    return start, stop
