"""Strict readers of the plain values that cross the pipe: numbers, strings, lists, objects.

Invariant: a value that reads is of the asked type and finite; anything else is a `FormatError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, TypeVar

from prime_core.api.errors import FormatError

T = TypeVar("T")


def number(value: object, what: str) -> float:
    """A finite float from what a plugin calls a number (numpy scalars included)."""
    if not isinstance(value, Real):
        raise FormatError(f"{what} is a {type(value).__name__}, not a number")
    result = float(value)
    if not math.isfinite(result):
        raise FormatError(f"{what} is {result}")
    return result


def text(value: object, what: str) -> str:
    """A string, as it is."""
    if not isinstance(value, str):
        raise FormatError(f"{what} is a {type(value).__name__}, not a string")
    return value


def whole(value: object, what: str) -> int:
    """An integer that isn't a boolean."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise FormatError(f"{what} is a {type(value).__name__}, not an integer")
    return value


def mapping(value: object, what: str) -> dict[str, Any]:
    """An object with string keys."""
    if not isinstance(value, Mapping):
        raise FormatError(f"{what} is a {type(value).__name__}, not an object")
    for key in value:
        if not isinstance(key, str):
            raise FormatError(f"{what} has the key {key!r}, which isn't a string")
    return dict(value)


def sequence(value: object, what: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    """A list, every element read by `read`."""
    if not isinstance(value, (list, tuple)):
        raise FormatError(f"{what} is a {type(value).__name__}, not a list")
    return tuple(read(item, f"{what}[{index}]") for index, item in enumerate(value))


def fields(value: object, what: str, names: tuple[str, ...]) -> list[Any]:
    """The members of an object that has exactly these names, in their order."""
    found = mapping(value, what)
    if found.keys() != set(names):
        raise FormatError(f"{what} has the keys {sorted(found)}, expected {sorted(names)}")
    return [found[name] for name in names]
