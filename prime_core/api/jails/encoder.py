"""Writes what a call returned as JSON with tags, by exact type, inside a jail.

Lies in the staged root as `prime_encoder`; `values.py` reads it outside. Invariant: a value that
isn't plain, or too deep, is a TypeError and never asked what it is.
"""

from __future__ import annotations

from _json import encode_basestring_ascii

TYPE_CHECKING = False  # importing typing would cost 10 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEPTH = 200  # of nested containers in a result


def plain_mapping(kind: type) -> bool:
    """Dictionaries of the language and its library, whose items are what they say."""
    return issubclass(kind, dict) and kind.__module__ in ("builtins", "collections")


def named_tuple(kind: type) -> bool:
    """A named tuple, which is written as the tuple that it is."""
    return issubclass(kind, tuple) and type(getattr(kind, "_fields", None)) is tuple


def encode(value: Any, put: Callable[[str], object], depth: int) -> None:
    """Write a value as JSON with tags, by exact type: [0 list, [1 tuple, [2 dict, [3 int, [4 float.

    Raises:
        TypeError: another type, or nested too deep.
    """
    kind = type(value)
    if value is None:
        put("null")
    elif kind is bool:
        put("true" if value else "false")
    elif kind is int:
        put(repr(value) if -(1 << 63) <= value < 1 << 63 else f'[3,"{value:x}"]')
    elif kind is float:
        put(repr(value) if value - value == 0 else f'[4,"{value!r}"]')  # nan and inf aren't JSON
    elif kind is str:
        put(encode_basestring_ascii(value))
    elif depth >= DEPTH:
        raise TypeError(f"the result is nested more than {DEPTH} deep")
    elif kind is list or kind is tuple or named_tuple(kind):
        put("[0" if kind is list else "[1")
        for item in list.__iter__(value) if kind is list else tuple.__iter__(value):
            put(",")
            encode(item, put, depth + 1)
        put("]")
    elif plain_mapping(kind):
        put("[2")
        for key, item in dict.items(value):
            put(",")
            encode(key, put, depth + 1)
            put(",")
            encode(item, put, depth + 1)
        put("]")
    else:
        raise TypeError(f"the result holds a {kind.__name__}")
