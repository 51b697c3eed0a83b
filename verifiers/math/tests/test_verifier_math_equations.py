"""Equations are compared side by side, whatever their left sides are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_verifier_math import MathParams, make

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
    ],
)
def test_the_same_equation_in_another_writing_is_equal(gold: str, answer: str) -> None:
    assert value(gold, answer) == 1.0
