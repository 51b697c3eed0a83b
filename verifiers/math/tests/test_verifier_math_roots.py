r"""Letters may be negative: \sqrt{x^2} is |x|, wherever both sides are real."""

from __future__ import annotations

import pytest
from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())


def value(gold: str, answer: str) -> float | None:
    return VERIFIER.explain(gold, rf"So \boxed{{{answer}}}.").value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\sqrt{x^2}", "x"),
        (r"(x^2)^{1/2}", "x"),
        (r"\sqrt[4]{x^4}", "x"),
        (r"\sqrt{x^2y}", r"x\sqrt{y}"),
        (r"\sqrt{xy^2}", r"y\sqrt{x}"),
        (r"\sqrt{xyz^2}", r"z\sqrt{xy}"),
        (r"\sqrt{x^3y}", r"x\sqrt{xy}"),
        (r"\sqrt{x^2+10x+25}", "x+5"),
        (r"\sqrt{(x-5)^2}", "5-x"),
        (r"\sqrt[6]{x^2}", r"\sqrt[3]{x}"),
        ("|x-5|", "5-x"),
        ("|x|", "x"),
        (r"y=\sqrt{x^2}", "y=x"),
        (r"\ln|x|", r"\ln x"),
    ],
)
def test_an_even_root_of_a_square_is_no_letter(one: str, other: str) -> None:
    assert (value(one, other), value(other, one)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\sqrt{x^2}", "|x|"),
        (r"\sqrt{x^2y}", r"|x|\sqrt{y}"),
        (r"\sqrt[3]{x^3}", "x"),
        (r"(\sqrt{x})^2", "x"),
        (r"\sqrt{xy}", r"\sqrt{x}\sqrt{y}"),
        (r"\sqrt{\frac1n}", r"\frac1{\sqrt n}"),
        (r"\sqrt{4x}", r"2\sqrt{x}"),
        (r"\sqrt{x^4}", "x^2"),
        (r"\sqrt{x^3}", r"x\sqrt{x}"),
        (r"x^{3/2}", r"x\sqrt{x}"),
        (r"36x\sqrt{35x}", r"\sqrt{60x}\sqrt{12x}\sqrt{63x}"),
        (r"\sqrt{x^2+1}", r"(1+x^2)^{1/2}"),
        (r"\ln(x^2)", r"2\ln x"),
        (r"\frac{1}{\sqrt{x}+1}", r"\frac{\sqrt{x}-1}{x-1}"),
        (r"\operatorname{arccot} x", r"\frac{\pi}{2}-\arctan x"),
        (r"\sin 2x", r"2\sin x\cos x"),
        (r"\sqrt{(x-5)^2}", "|5-x|"),
        (r"y=\sqrt{x^2}", "y=|x|"),
    ],
)
def test_equal_where_both_are_real_stays_equal(one: str, other: str) -> None:
    assert (value(one, other), value(other, one)) == (1.0, 1.0)
