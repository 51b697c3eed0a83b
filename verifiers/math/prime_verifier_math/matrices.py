"""Matrices and column vectors in LaTeX environments, with a factor in front.

Called by `reading.py` where an environment begins; entries are expressions.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_verifier_math import tree
from prime_verifier_math.answers import Answer, Matrix
from prime_verifier_math.bounds import MAX_ITEMS, OverBound, Unreadable
from prime_verifier_math.expressions import parse_expression
from prime_verifier_math.splitting import cut, relation, spelled
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Node

_MATRICES = frozenset(("pmatrix", "bmatrix", "Bmatrix", "matrix", "smallmatrix", "array"))
_WRAPPERS = frozenset(("aligned", "align", "gathered", "equation", "split", "cases"))


def read_matrix(made: Sequence[Token]) -> Answer | None:
    """A matrix with an optional factor in front; None where other things stand around it."""
    start = next(i for i, token in enumerate(made) if token.is_cmd("begin"))
    name, body = _environment_name(made, start)
    stop = next((i for i in range(len(made) - 1, start, -1) if made[i].is_cmd("end")), len(made))
    if stop == len(made):
        raise Unreadable("an environment without an end")
    tail = _environment_name(made, stop)[1]
    before, behind = list(made[:start]), list(made[tail:])
    inner = made[body:stop]
    if any(token.is_cmd("begin", "end") for token in inner):
        return None
    if name in _WRAPPERS and not before and not behind:
        if name == "cases" and any(token.is_op("&") for token in inner):
            raise Unreadable("a value by cases")
        return _wrapped(inner)
    if name not in _MATRICES:
        raise Unreadable(f"{name} is a question, not an answer")
    if before and behind and before[-1].is_op("([") and behind[0].is_op(")]"):
        before, behind = before[:-1], behind[1:]
    if behind:
        return None
    if any(token.is_op("=") for token in before):
        return None
    factor = parse_expression(before) if before else None
    if name == "array":
        inner = _without_columns(inner)
    return Matrix(_rows(inner, factor))


def _environment_name(made: Sequence[Token], at: int) -> tuple[str, int]:
    """The name behind \\begin or \\end, and the index behind it."""
    index = at + 1
    if index >= len(made) or not made[index].is_op("{"):
        raise Unreadable("an environment without a name")
    stop = next((i for i in range(index, len(made)) if made[i].is_op("}")), None)
    if stop is None:
        raise Unreadable("an environment without a name")
    return spelled(made[index + 1 : stop]).replace(" ", "").rstrip("*"), stop + 1


def _wrapped(inner: Sequence[Token]) -> Answer:
    from prime_verifier_math.reading import read_tokens

    lines = cut(inner, lambda token: "\\" if token.is_op("\\") else None).parts
    made: list[Token] = []
    for line in (line for line in lines if line):
        plain = [token for token in line if not token.is_op("&")]
        if made and plain and not relation(plain[0]):
            made.append(Token("op", ","))  # a line of its own, not the chain of the one above
        made.extend(plain)
    return read_tokens(made)


def _without_columns(inner: Sequence[Token]) -> Sequence[Token]:
    """Skip the column letters of an array: {cc}."""
    if inner and inner[0].is_op("{"):
        stop = next((i for i, token in enumerate(inner) if token.is_op("}")), 0)
        return inner[stop + 1 :]
    return inner


def _rows(inner: Sequence[Token], factor: Node | None) -> tuple[tuple[Node, ...], ...]:
    rows: list[tuple[Node, ...]] = []
    for line in cut(inner, lambda token: "\\" if token.is_op("\\") else None).parts:
        if not line:
            continue
        cells = cut(line, lambda token: "&" if token.is_op("&") else None).parts
        if len(cells) > MAX_ITEMS or len(rows) > MAX_ITEMS:
            raise OverBound("too many entries")
        row = [parse_expression(cell) for cell in cells]
        rows.append(tuple(tree.multiply(factor, node) if factor else node for node in row))
    if not rows or len({len(row) for row in rows}) != 1:
        raise Unreadable("rows of different lengths")
    return tuple(rows)
