"""What counts as the same output."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_code.text_rules import TextRules, same_text

DEFAULT = TextRules()


@pytest.mark.parametrize(
    ("output", "expected", "same"),
    [
        ("6\n", "6\n", True),
        ("6", "6\n", True),
        ("  6  \n\n\n", "6", True),
        ("1 2 \n3\t4", "1 2\n3 4\n", True),
        ("1  2", "1 2", True),
        ("1\r\n2\r\n", "1\n2\n", True),
        ("\n\n6", "6", True),
        ("Yes", "YES", False),
        ("YES", "NO", False),
        ("Bob", "Alice", False),
        ("2 1", "1 2", False),
        ("2\n1", "1\n2", False),
        ("1 2", "1\n2", False),
        ("1\n\n2", "1\n2", False),
        ("1 2", "1 2 2", False),
        ("Answer: 6", "6", False),
        ("", "6", False),
        ("6 6", "6", False),
        ("2.3333333333333335", "2.333333", True),
        ("2.33", "2.333333", False),
        ("1e-7", "0.0", True),
        ("1.5e3", "1500.0", True),
        ("7.0", "7", True),
        ("+7", "7", True),
        ("7.0000001", "7", False),
        ("50000000000000000", "50000000000000001", False),
        ("9" * 30_000, "9" * 30_000, True),
        ("9" * 30_000, "9" * 29_999 + "8", False),
        ("nan", "0.5", False),
        ("inf", "1e400000", False),
        ("1e999999", "2e999999", False),
        ("NaN", "nan", False),
        ("0x10", "16", False),
        ("1_000", "1000", False),
        ("٣", "3", False),
        ("６", "6", False),
        ("\ufeff6", "6", False),
        ("6\x00", "6", False),
        ("[4]", "4", False),
    ],
)
def test_defaults(output: str, expected: str, same: bool) -> None:
    assert same_text(output.encode("utf-8"), expected, DEFAULT) is same


def test_bytes_that_are_no_text_are_wrong() -> None:
    assert not same_text(b"\xff6", "6", DEFAULT)


@pytest.mark.parametrize(
    ("rules", "output", "expected"),
    [
        ({"mode": "bytes"}, "6", "6\n"),
        ({"mode": "lines"}, "7.0", "7"),
        ({"mode": "lines"}, "1  2", "1 2"),
        ({"numbers": False}, "7.0", "7"),
        ({"float_tolerance": 0}, "0.3000001", "0.3"),
    ],
)
def test_stricter_options(rules: dict[str, object], output: str, expected: str) -> None:
    assert same_text(output.encode(), expected, DEFAULT)
    assert not same_text(output.encode(), expected, TextRules.model_validate(rules))


@pytest.mark.parametrize(
    ("rules", "output", "expected"),
    [
        ({"ignore_case": True}, "Yes", "YES"),
        ({"ignore_blank_lines": True}, "1\n\n2", "1\n2"),
        ({"unordered_lines": True}, "2\n1", "1\n2"),
        ({"float_tolerance": 0.1}, "0.35", "0.3"),
    ],
)
def test_laxer_options(rules: dict[str, object], output: str, expected: str) -> None:
    assert not same_text(output.encode(), expected, DEFAULT)
    assert same_text(output.encode(), expected, TextRules.model_validate(rules))


def test_unordered_lines_still_count_each_line() -> None:
    rules = TextRules(unordered_lines=True)
    assert not same_text(b"1\n2\n2", "1\n1\n2", rules)


@given(st.integers())
def test_an_integer_equals_itself_and_no_neighbour(number: int) -> None:
    assert same_text(str(number).encode(), str(number), DEFAULT)
    assert not same_text(str(number + 1).encode(), str(number), DEFAULT)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_float_is_found_again(number: float) -> None:
    expected = f"{Decimal(number):f}"
    expected += "" if "." in expected else ".0"  # an expected integer would have no tolerance
    assert same_text(str(number).encode(), expected, DEFAULT)


@given(st.binary(), st.text())
def test_any_output_gets_a_verdict(output: bytes, expected: str) -> None:
    assert same_text(output, expected, DEFAULT) in (True, False)
