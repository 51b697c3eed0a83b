"""Equations are compared side by side, whatever their left sides are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prime_verifier_math import MathParams, make
from prime_verifier_math.vocabulary import FILLERS

from prime_core.api import Completion, Score, Task
from prime_core.testing.context import OfflineContext


def value(gold: str, answer: str) -> float | None:
    verifier = make(MathParams(), OfflineContext(Path("unused")))
    score = verifier.verify(Task("1", (), gold), Completion(rf"So \boxed{{{answer}}}."))
    assert isinstance(score, Score)
    return score.value


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("x+y=5", "x-y=5"),
        ("x^2+y^2=1", "x^2-y^2=1"),
        ("ab=6", "a+b=6"),
        ("x+y=5", "x+y=6"),
        ("x+y=5", "xy=5"),
        ("x+y=5", "y=5+x"),
        ("y=5-x", "x-y=5"),
        ("x=5", "y=5"),
        ("P(x)=5", "Q(x)=5"),
        ("f(x)=5", "g(x)=5"),
        ("P(x)=x^2-1", "Q(x)=x^2-1"),
        ("P(x)=x^2-1", "x^2+1"),
        ("P(A)=1/3", "P(B)=1/3"),
        ("5", "P(x)=5"),
        ("ab=6", "6"),
        ("xyz=6", "6"),
        ("f(3)=5", "f(2)=5"),
        ("P(2)=5", "P(3)=5"),
        ("P(2)=5", "f(2)=5"),
        ("P(2)=5", "6"),
        ("P(X>2)=1/3", "P(X>3)=1/3"),
        ("f'(2)=5", "f(2)=5"),
        ("f(x)=2x", "f'(x)=2x"),
        (r"x+y=5", r"x+\sqrt{y^2}=5"),
        (r"x+\sqrt{y^2}=5", "x+y=5"),
        (r"x+|y|=5", "x+y=5"),
        (r"\sqrt{x^2}<3y", "x<3y"),
    ],
)
def test_equations_with_other_left_sides_differ(gold: str, answer: str) -> None:
    assert value(gold, answer) == 0.0


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("x+y=5", "x+y=5"),
        ("x+y=5", "y=5-x"),
        ("y=5-x", "x+y=5"),
        ("x+y=5", "2x+2y=10"),
        ("x+y=5", "5=y+x"),
        ("x^2+y^2=25", "25-x^2=y^2"),
        ("AB=5", "AB=5"),
        ("f(x)=x^2", "y=x^2"),
        ("P(x)=x^2-1", "(x-1)(x+1)"),
        ("x^2-1", "P(x)=x^2-1"),
        ("T(n)=2n", "2n"),
        ("P(x)=x^2", "y=x^2"),
        ("1/3", "P(A)=1/3"),
        ("ab=6", "a(b)=6"),
        ("5", "AB=5"),
        ("x=5", "x=5"),
        ("ab=6", "ba=6"),
        ("6", "ab=6"),
        ("AB=6", "6"),
        ("P(2)=5", "5"),
        ("P(2)=5", "P(2) = 5"),
        ("5", "P(2)=5"),
        ("a(3)=6", "6"),
        (r"P(A)=\frac13", r"\frac13"),
        (r"P(A)=\frac13", "P(A)=1/3"),
        (r"P(X>2)=\frac13", r"\frac13"),
        (r"P(A\cap B)=\frac13", r"\frac13"),
        ("f(1/2)=5", "f(0.5)=5"),
        ("f'(2)=5", "5"),
        (r"x+\sqrt{y^2}=5", "x+|y|=5"),
        (r"y=\sqrt{x}", r"2y=\sqrt{4x}"),
    ],
)
def test_the_same_equation_in_another_writing_is_equal(gold: str, answer: str) -> None:
    assert value(gold, answer) == 1.0


@given(st.integers(-99, 99), st.integers(-99, 99), st.sampled_from("fghPQ"))
def test_a_function_is_named_with_its_argument(one: int, other: int, name: str) -> None:
    gold = f"{name}({one}) = 7"
    assert value(gold, "7") == 1.0
    assert value(gold, f"{name}({other})=7") == float(one == other)


@given(st.lists(st.sampled_from("bcmnpqxyz"), min_size=2, max_size=3, unique=True))
def test_a_product_of_small_letters_is_no_name(letters: list[str]) -> None:
    product = "".join(letters)
    assume(not {product, product[::-1]} & FILLERS)
    assert value(f"{product}=6", "6") == 0.0
    assert value(f"{product}=6", f"{product[::-1]} = 6") == 1.0
    assert value(f"{product.upper()}=6", "6") == 1.0
