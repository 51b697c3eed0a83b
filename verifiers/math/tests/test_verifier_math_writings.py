"""Writings of fractions, ratios, texts and signs that other kinds of tests leave out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_math import MathParams, MathVerifier
from prime_verifier_math.numerals import numeral

VERIFIER = MathVerifier(MathParams())


def accepted(gold: str, answer: str) -> bool:
    assert VERIFIER.check_gold(gold).ok, gold
    return VERIFIER.explain(gold, f"So $\\boxed{{{answer}}}$.").value == 1.0


@given(st.integers(-99, 99), st.integers(1, 99))
def test_infix_fractions(top: int, bottom: int) -> None:
    gold = f"\\frac{{{top}}}{{{bottom}}}"
    assert accepted(gold, f"{{{top} \\over {bottom}}}")
    assert accepted(f"x + {gold}", f"x + {{{top} \\over {{{bottom}}}}}")
    assert not accepted(gold, f"{{{top + 1} \\over {bottom}}}")


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{3}{4}", r"3 \over 4"),
        (r"\frac{\sqrt3}{2}", r"{\sqrt{3} \over 2}"),
        (r"\frac{1}{1+\frac{1}{x}}", r"{1 \over 1 + {1 \over x}}"),
        (r"\binom{5}{2}", r"{5 \choose 2}"),
        ("10", r"{5 \choose 2}"),
    ],
)
def test_infix_commands_have_operands_up_to_their_group(gold: str, answer: str) -> None:
    assert accepted(gold, answer)


@given(st.integers(1, 99), st.integers(1, 99))
def test_ratios_in_words(one: int, other: int) -> None:
    gold = f"{one}:{other}"
    for writing in (
        f"{one} \\text{{ to }} {other}",
        f"{one} to {other}",
        f"\\text{{{one} to {other}}}",
    ):
        assert accepted(gold, writing)
        assert accepted(writing, gold)
    assert accepted(gold, f"{other} to {one}") == (one == other)
    assert not accepted(gold, f"{one} to {other + 1}")


@given(st.integers(-99, 99), st.sampled_from(["<", ">", "≤", "≥", "="]))
def test_mathematics_in_a_text(value: int, sign: str) -> None:
    assert accepted(f"x {sign} {value}", f"\\text{{x {sign} {value}}}")
    assert not accepted(f"x {sign} {value}", f"\\text{{x {sign} {value + 1}}}")


@given(st.integers(1, 999))
def test_both_signs_are_named_once(value: int) -> None:
    gold = f"\\pm {value}"
    assert accepted(gold, f"{value}, -{value}")
    assert accepted(gold, f"\\{{-{value}, {value}\\}}")
    for wrong in (f"{value}", f"{value}, \\pm {value}", f"{value}, {value}, -{value}"):
        assert not accepted(gold, wrong)


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("zero", 0),
        ("twelve", 12),
        ("twenty-four", 24),
        ("one hundred and five", 105),
        ("two thousand three hundred and one", 2301),
        ("three million", 3_000_000),
        ("one two", None),
        ("ten one", None),
        ("hundred", None),
        ("and", None),
        ("twenty twenty", None),
        ("thousand thousand", None),
        ("one million two million", None),
        ("", None),
    ],
)
def test_whole_numbers_in_words(words: str, number: int | None) -> None:
    assert numeral(words) == number


@pytest.mark.parametrize(
    "said",
    [
        "The correct option is ({a}).",
        "So the right choice is {a}.",
        "**Correct option: {a}**",
    ],
)
@pytest.mark.parametrize("letter", "ABCDE")
def test_a_correct_option_is_a_statement(said: str, letter: str) -> None:
    other = "C" if letter == "B" else "B"
    for answer, value in ((letter, 1.0), (other, 0.0)):
        assert VERIFIER.explain(letter, said.format(a=answer)).value == value
    doubted = said.format(a=letter) + f" But {other} is possible too."
    assert VERIFIER.explain(letter, doubted).value == 0.0
