"""How a function's result is held against the expected value, outside every jail.

Called by the judge with values that were rebuilt from plain data, so only exact built-in types
occur here and no method of the candidate's can run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from prime_core.api import Params

MAX_DEPTH = 200  # what the jail's encoder lets through
MISSING = object()


class ValueRules(Params):
    """Options of the comparison of returned values."""

    mode: Literal["json", "python"] = Field(
        default="json",
        description="json: by the options below; python: the language's own ==, so that a list is "
        "no tuple, True is 1 and floats must be equal exactly",
    )
    tuple_is_list: bool = Field(default=True, description="a tuple equals a list, at any depth")
    bool_is_int: bool = Field(default=False, description="True equals 1; off: they differ")
    whole_float_is_int: bool = Field(default=True, description="2.0 equals an expected 2")
    float_tolerance: float = Field(
        default=1e-6,
        ge=0,
        lt=1,
        description="|a - b| <= tolerance * max(1, |b|), only where the expected value is a "
        "float; 0 turns it off",
    )
    keys_as_text: bool = Field(
        default=True, description="keys of dicts are compared as JSON writes them"
    )
    unordered: bool = Field(
        default=False, description="the items of the outermost list in any order"
    )


def same_value(found: Any, expected: Any, rules: ValueRules) -> bool:
    """True where the value is the expected one under the rules.

    NaN equals nothing. Never raises for values of built-in types.
    """
    if rules.mode == "python":
        return _python_equal(found, expected)
    if rules.unordered and type(expected) is list and type(found) in _sequences(rules):
        return _same_items_unordered(found, expected, rules)
    return _same(found, expected, rules, 0)


def _python_equal(found: Any, expected: Any) -> bool:
    try:
        return bool(found == expected)
    except (RecursionError, OverflowError):
        return False


def _sequences(rules: ValueRules) -> tuple[type, ...]:
    return (list, tuple) if rules.tuple_is_list else (list,)


def _same(found: Any, expected: Any, rules: ValueRules, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(expected, bool) or isinstance(found, bool):
        return _same_bool(found, expected, rules)
    if isinstance(expected, int | float):
        return _same_number(found, expected, rules)
    if isinstance(expected, list | tuple):
        if type(found) is not type(expected) and not (
            rules.tuple_is_list and type(found) in (list, tuple)
        ):
            return False
        return len(found) == len(expected) and all(
            _same(one, other, rules, depth + 1) for one, other in zip(found, expected, strict=True)
        )
    if isinstance(expected, dict):
        return type(found) is dict and _same_mapping(found, expected, rules, depth)
    return type(found) is type(expected) and bool(found == expected)


def _same_bool(found: Any, expected: Any, rules: ValueRules) -> bool:
    if isinstance(found, bool) and isinstance(expected, bool):
        return found is expected
    return rules.bool_is_int and isinstance(found, bool | int) and bool(found == expected)


def _same_number(found: Any, expected: int | float, rules: ValueRules) -> bool:
    if not isinstance(found, int | float) or found != found or expected != expected:
        return False
    if isinstance(expected, int):
        # Python compares ints and floats exactly, at any size.
        return found == expected and (isinstance(found, int) or rules.whole_float_is_int)
    if found == expected:
        return True
    try:
        a, b = float(found), float(expected)
    except OverflowError:  # an int beyond every float
        return False
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    return abs(a - b) <= rules.float_tolerance * max(1.0, abs(b))


def _same_mapping(
    found: Mapping[Any, Any], expected: Mapping[Any, Any], rules: ValueRules, depth: int
) -> bool:
    if len(found) != len(expected):
        return False
    if rules.keys_as_text:
        found, expected = _text_keys(found), _text_keys(expected)
        if len(found) != len(expected):  # 1 and "1" fell together
            return False
    for key, value in expected.items():
        other = found.get(key, MISSING)
        if other is MISSING or not _same(other, value, rules, depth + 1):
            return False
    return True


def _text_keys(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key_text(key): value for key, value in mapping.items()}


def key_text(key: Any) -> Any:
    """The key as JSON writes it; a tuple stays what it is, JSON has none."""
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return float.__repr__(key)
    if isinstance(key, int):
        # Beyond the interpreter's limit of digits no JSON text holds the key either.
        return str(key) if key.bit_length() < 10_000 else key
    return key


def _same_items_unordered(found: Sequence[Any], expected: Sequence[Any], rules: ValueRules) -> bool:
    if len(found) != len(expected):
        return False
    left = list(expected)
    for item in found:
        place = next((i for i, other in enumerate(left) if _same(item, other, rules, 1)), None)
        if place is None:
            return False
        del left[place]
    return True
