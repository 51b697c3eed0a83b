"""The calculator: exact, bounded, and never code."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_env_calculator.calculator import MAX_CHARACTERS, CalculatorError, calculate

# Trees of (text, value); division by zero is left out where it would happen.
NUMBERS = st.integers(0, 999).map(lambda n: (str(n), Fraction(n)))


def join(pairs: tuple[tuple[str, Fraction], str, tuple[str, Fraction]]) -> tuple[str, Fraction]:
    (left, a), sign, (right, b) = pairs
    value = {"+": a + b, "-": a - b, "*": a * b}.get(sign)
    if value is None:
        value = a / b if b else a + b
        sign = "/" if b else "+"
    return f"({left} {sign} {right})", value


TREES = st.recursive(
    NUMBERS, lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(join), max_leaves=8
)


@given(TREES)
def test_it_calculates_exactly(tree: tuple[str, Fraction]) -> None:
    text, value = tree
    if len(text) <= MAX_CHARACTERS:
        assert Fraction(calculate(text)) == value


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2+3*4", "14"),
        ("2*3+4", "10"),
        ("8-3-2", "3"),
        ("8/4/2", "1"),
        ("7/2", "7/2"),
        ("-(2+3)*-4", "20"),
        (" 12 × 3 − 6 ÷ 2 ", "33"),
    ],
)
def test_signs_and_their_order(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nothing"),
        ("1/0", "zero"),
        ("1/(2-2)", "zero"),
        ("2**3", "can't read"),
        ("(1+2", "closed"),
        ("1+", "early"),
        ("1 2", "can't read"),
        ("abc", "can't read"),
        ("__import__('os')", "can't read"),
        ("9" * 41, "digits"),
        ("1+" * 150 + "1", "characters"),
        ("-" * 60 + "1", "levels"),
        ("(" * 60 + "1" + ")" * 60, "levels"),
        ("٣+1", "can't read"),
    ],
)
def test_what_has_no_result_says_why(text: str, reason: str) -> None:
    with pytest.raises(CalculatorError, match=reason):
        calculate(text)


@given(st.text(max_size=300))
def test_any_text_ends_in_a_result_or_a_reason(text: str) -> None:
    try:
        found = calculate(text)
    except CalculatorError:
        return
    assert str(Fraction(found)) == found
