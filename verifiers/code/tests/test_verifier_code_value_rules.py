"""What counts as the same value."""

from __future__ import annotations

from typing import Any

import pytest
from prime_verifier_code.value_rules import ValueRules, same_value

DEFAULT = ValueRules()
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        (9, 9, True),
        (9, 8, False),
        (10**24, 10**24, True),
        (10**24 + 1, 10**24, False),
        (float(10**24), 10**24, False),
        (2.0, 2, True),
        (2, 2.0, True),
        (0.6000000000000001 / 3, 0.2, True),
        (0.2001, 0.2, False),
        (3.0000001, 3, False),
        (10**400, 1.0, False),
        (True, 1, False),
        (1, True, False),
        (True, True, True),
        (False, 0, False),
        (None, False, False),
        (None, None, True),
        (NAN, 1.0, False),
        (NAN, NAN, False),
        (INF, INF, True),
        (INF, 1e308, False),
        ("9", 9, False),
        (9, "9", False),
        ("a", "a", True),
        (b"a", "a", False),
        ([1, 2], [1, 2], True),
        ((1, (2, 3)), [1, [2, 3]], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ({1, 2}, [1, 2], False),
        ([], None, False),
        ([], {}, False),
        ("", None, False),
        (["a"], "a", False),
        ({"a": 1}, {"a": 1}, True),
        ({1: 2}, {"1": 2}, True),
        ({True: 2, None: 3, 0.5: 4}, {"true": 2, "null": 3, "0.5": 4}, True),
        ({1: 2, "1": 2}, {"1": 2}, False),
        ({"1": 2, 1: 3}, {"1": 2, "2": 3}, False),
        ({(1, 2): 3}, {"(1, 2)": 3}, False),
        ({"a": [1.0000001]}, {"a": [1.0]}, True),
        ({"a": 1}, [["a", 1]], False),
    ],
)
def test_defaults(found: Any, expected: Any, same: bool) -> None:
    assert same_value(found, expected, DEFAULT) is same


@pytest.mark.parametrize(
    ("rules", "found", "expected", "same"),
    [
        ({"tuple_is_list": False}, (1,), [1], False),
        ({"bool_is_int": True}, True, 1, True),
        ({"bool_is_int": True}, 2, True, False),
        ({"whole_float_is_int": False}, 2.0, 2, False),
        ({"float_tolerance": 0}, 0.30000000000000004, 0.3, False),
        ({"keys_as_text": False}, {1: 2}, {"1": 2}, False),
        ({"unordered": True}, [3, 1, 2], [1, 2, 3], True),
        ({"unordered": True}, [1, 1, 2], [1, 2, 2], False),
        ({"mode": "python"}, (1,), [1], False),
        ({"mode": "python"}, True, 1, True),
        ({"mode": "python"}, {1, 2}, {2, 1}, True),
    ],
)
def test_options(rules: dict[str, object], found: Any, expected: Any, same: bool) -> None:
    assert same_value(found, expected, ValueRules.model_validate(rules)) is same


def test_deep_values_end_without_an_exception() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert same_value(deep, deep, DEFAULT) is False
