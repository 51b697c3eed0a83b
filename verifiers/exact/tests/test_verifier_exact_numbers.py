"""Reading and comparing numbers exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_exact.numbers import after_marker, last_number, parse


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "42.0"),
        ("1,234", "1234"),
        ("1,234,567.50", "1234567.5"),
        ("$5", "5"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("€-5", "-5"),
        ("+7", "7"),
        ("-0", "0"),
        ("007", "7"),
        (".5", "0.5"),
        ("5.", "5"),
        ("42.", "42"),
        ("**42**", "42"),
        ("$42$.", "42"),
        ("25%", "25"),
        ("1/2", "0.5"),
        ("-2/4", "-1/2"),
        ("6/1", "6"),
        ("3/3", "1"),
        ("0.10", "0.1"),
    ],
)
def test_these_are_the_same_number(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    assert first is not None
    assert second is not None
    assert first.equals(second)
    assert second.equals(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [("42", "43"), ("42", "-42"), ("0.1", "0.10000000000000001"), ("1/3", "0.3333"), ("1", "10")],
)
def test_these_are_different_numbers(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    assert first is not None
    assert second is not None
    assert not first.equals(second)


NO_NUMBERS = (
    ["", ".", "-", "--5", "-+5", "1e3", "0x10", "1,23", "12,34", "1.2.3", "5/0", "5/", "/5"],
    ["nan", "inf", "٤٢", "½", "4\x002", "\ud800", "1_000", "42apples", "[42]", "$"],
)


@pytest.mark.parametrize("token", [*NO_NUMBERS[0], *NO_NUMBERS[1]])
def test_these_are_no_numbers(token: str) -> None:
    assert parse(token) is None


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9
    )
)
def test_any_decimal_is_read_exactly(value: object) -> None:
    number = parse(f"{value:f}")
    again = parse(str(Fraction(f"{value:f}")))
    assert number is not None
    assert again is not None
    assert number.equals(again)


@given(st.integers(), st.integers(1), st.integers(1, 50))
def test_fractions_are_equal_after_expanding(top: int, bottom: int, factor: int) -> None:
    one, other = parse(f"{top}/{bottom}"), parse(f"{top * factor}/{bottom * factor}")
    assert one is not None
    assert other is not None
    assert one.equals(other)


def test_ten_thousand_digits_are_compared() -> None:
    digits = "7" * 10_000
    one, other, near = parse(digits), parse(f"0{digits}.000"), parse(digits[:-1] + "8")
    assert one is not None
    assert other is not None
    assert near is not None
    assert one.equals(other)
    assert not one.equals(near)


def test_huge_fractions_are_equal_to_nothing() -> None:
    huge = parse("1" * 5000 + "/" + "1" * 5000)
    one = parse("1")
    assert huge is not None
    assert one is not None
    assert not huge.equals(one)


@given(st.text())
def test_any_text_is_a_number_or_not(text: str) -> None:
    parse(text)
    after_marker(f"#### {text}", "####")
    last_number(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it is 5, then 7.", "7"),
        ("from 3-5", "5"),
        ("x = -5", "-5"),
        ("costs $1,200.50 in all", "1200.5"),
        ("a1 b2", "2"),
        ("10/4 of it", "2.5"),
    ],
)
def test_the_last_number_anywhere(text: str, found: str) -> None:
    number, expected = last_number(text), parse(found)
    assert number is not None
    assert expected is not None
    assert number.equals(expected)


def test_no_number_anywhere() -> None:
    assert last_number("none at all") is None
