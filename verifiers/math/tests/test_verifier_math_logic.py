"""Signs of logic between propositions are symbols of their own, never commas."""

from __future__ import annotations

import pytest
from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())


def value(gold: str, answer: str) -> float | None:
    return VERIFIER.explain(gold, rf"So \boxed{{{answer}}}.").value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"p\land q", r"p\lor q"),
        (r"p\wedge q", r"p\vee q"),
        ("p ∧ q", "p ∨ q"),
        (r"p\land q", "p, q"),
        (r"p\lor q", "p, q"),
        (r"p\land q", "pq"),
        (r"p\land q", r"p\text{ or }q"),
        (r"(p\land q)", r"(p\lor q)"),
        (r"(p\land q)\lor r", r"p\land(q\lor r)"),
        (r"p\land q\lor r", r"p\lor q\land r"),
        (r"\neg p\land q", r"\neg p\lor q"),
        (r"\neg p", "p"),
        (r"\lnot p", "p"),
        (r"\sim p", "p"),
        (r"p\to q", r"q\to p"),
        (r"p\leftrightarrow q", r"p\to q"),
        (r"p\oplus q", r"p\lor q"),
        (r"p\foo q", "pq"),
        (r"p\foo q", r"p\baz q"),
        (r"x=2\lor x=3", r"x=2\land x=3"),
        (r"2\land 3", r"2\lor 3"),
        (r"x>2\land x<5", r"x>2\lor x<5"),
        (r"F=p\lor q", "F=p,q"),
        (r"F=p\lor q", r"F=p\land q"),
        (r"F=p\lor q", r"F=q"),
    ],
)
def test_other_signs_of_logic_differ(one: str, other: str) -> None:
    assert (value(one, other), value(other, one)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"p\land q", r"p \wedge q"),
        (r"p\land q", "p ∧ q"),
        (r"(p\lor q)", r"p\vee q"),
        (r"x=2\lor x=3", "2, 3"),
        (r"x=2\lor x=3", r"x=3\text{ or }x=2"),
        (r"x=1\land y=2", "x=1, y=2"),
        (r"x>2\land x<5", "(2,5)"),
        (r"x\le-2\lor x\ge2", r"(-\infty,-2]\cup[2,\infty)"),
        (r"2\lor 3", "2, 3"),
        (r"F=p\lor q", r"F = p \vee q"),
        (r"F=p\lor q", r"p\lor q"),
        (r"x=2\lor 3", "x=2, x=3"),
        (r"p\land q\to r", r"p\wedge q\Rightarrow r"),
    ],
)
def test_the_same_formula_in_another_writing_is_equal(one: str, other: str) -> None:
    assert (value(one, other), value(other, one)) == (1.0, 1.0)
