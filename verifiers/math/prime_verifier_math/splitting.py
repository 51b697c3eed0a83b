"""Cutting token lists at the top level: by commas, relations, set operations.

Used by every reader of typed answers; brackets of any kind protect what is inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_verifier_math.tokens import Token

_OPENING = ("langle", "lfloor", "lceil", "begin")
_CLOSING = ("rangle", "rfloor", "rceil", "end")
RELATIONS = {"=": "=", "<": "<", ">": ">", "le": "<=", "ge": ">=", "ne": "!=", "in": "in",
             "approx": "~", "equiv": "==", "notin": "notin"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cut:
    """Parts and the separators between them, one fewer."""

    parts: list[list[Token]]
    separators: list[str]


def depth_change(token: Token) -> int:
    """1 for an opening bracket, -1 for a closing one."""
    if token.kind == "op":
        if token.text in "([{":
            return 1
        return -1 if token.text in ")]}" else 0
    if token.kind == "cmd":
        if token.text == "{" or token.text in _OPENING:
            return 1
        return -1 if token.text == "}" or token.text in _CLOSING else 0
    return 0


def cut(made: Sequence[Token], separator: Callable[[Token], str | None]) -> Cut:
    """Cut at the tokens of depth 0 for which `separator` gives a name."""
    parts: list[list[Token]] = [[]]
    names: list[str] = []
    depth = 0
    for token in made:
        depth += depth_change(token)
        name = separator(token) if depth == 0 else None
        if name is None:
            parts[-1].append(token)
        else:
            names.append(name)
            parts.append([])
    return Cut(parts, names)


def list_separator(token: Token) -> str | None:
    """Commas, semicolons, and the words and, or."""
    if token.is_op(",;"):
        return ","
    if token.kind == "join":
        return "or" if token.text == "or" else ","
    if token.is_cmd("lor"):
        return "or"
    return "," if token.is_cmd("land") else None


def relation(token: Token) -> str | None:
    """The relation that a token is."""
    return RELATIONS.get(token.text) if token.kind in ("op", "cmd") else None


def whole_bracket(made: Sequence[Token]) -> bool:
    """Whether the first token opens a bracket that the last one closes."""
    if len(made) < 2 or depth_change(made[0]) != 1 or depth_change(made[-1]) != -1:
        return False
    depth = 0
    for index, token in enumerate(made):
        depth += depth_change(token)
        if depth <= 0:
            return index == len(made) - 1
    return False


def spelled(made: Sequence[Token]) -> str:
    """The tokens as one text, for words and for identical writings."""
    return "".join((" " if token.space else "") + token.text for token in made).strip()
