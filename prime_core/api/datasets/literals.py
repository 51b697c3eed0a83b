"""Dicts that a data set stores as text: JSON, or Python literals as GENESYS files hold them.

Called by the column mapping; the text is data of unknown authors, so it is checked token by token
before it is parsed, nothing is ever evaluated, and size and nesting are bounded.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from typing import Any

MAX_TEXT = 16 * 2**20  # characters; SYNTHETIC-1's largest test cases are a few MiB
MAX_DEPTH = 64  # far below what the interpreter's own parsers take

# Every token of a literal of plain data. Quantifiers are possessive: one pass, no backtracking.
TOKEN = re.compile(
    r"""\s++
      | (?P<open>[\[({])
      | (?P<close>[\])}])
      | [,:]
      | [uU]?'(?:[^'\\\n]|\\.)*+'
      | [uU]?"(?:[^"\\\n]|\\.)*+"
      | [-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?(?![0-9A-Za-z_.])
      | (?:True|False|None)(?![0-9A-Za-z_])""",
    re.VERBOSE | re.DOTALL,
)


def read_mapping(text: str) -> dict[str, Any]:
    """A dict from JSON, or else from a Python literal; tuples become lists.

    Raises:
        ValueError: neither, too large, nested too deep, not a dict, or not plain JSON inside
            (a set, bytes, a key that isn't text, a number that isn't finite).
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"a dict of {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _read_literal(text)
    plain = plain_json(value)
    if not isinstance(plain, dict):
        raise ValueError(f"a dict was expected, not {type(plain).__name__}")
    return plain


def _read_literal(text: str) -> Any:
    _check_tokens(text)
    try:
        with warnings.catch_warnings():
            # An unknown escape such as \pi is the data's spelling, not this program's mistake.
            warnings.simplefilter("ignore")
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"neither JSON nor a Python literal: {error}") from error


def _check_tokens(text: str) -> None:
    position = depth = 0
    while position < len(text):
        token = TOKEN.match(text, position)
        if token is None:
            near = text[position : position + 20]
            raise ValueError(f"neither JSON nor a Python literal, at {position}: {near!r}")
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        position = token.end()


def plain_json(value: Any, depth: int = 0) -> Any:
    """The value as plain finite JSON, tuples as lists.

    Raises:
        ValueError: something else is inside, or it is nested more than 64 deep.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return check_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"the number {value!r} isn't JSON")
        return value
    if isinstance(value, list | tuple):
        return [plain_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_key(key): plain_json(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"a {type(value).__name__} isn't plain JSON")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"the key {key!r} isn't text")
    return check_text(key)


def check_text(text: str) -> str:
    """The text itself; half a surrogate pair would fail much later, in a tokenizer or a file.

    Raises:
        ValueError: the text can't be written as UTF-8.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half a surrogate pair") from error
    return text
