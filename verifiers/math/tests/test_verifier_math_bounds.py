"""Texts that hang, bomb or crash other graders get a verdict, within counted steps."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prime_verifier_math import MathParams, MathVerifier
from prime_verifier_math.bounds import MAX_STEPS, Steps

VERIFIER = MathVerifier(MathParams())
CELLS = r" \\ ".join(" & ".join(f"a_{{{i}{j}}}" for j in range(12)) for i in range(12))


def nested(left: str, count: int, inner: str, right: str) -> str:
    return left * count + inner + right * count


BOXED = {
    "texts in texts": nested(r"\text{", 2800, "½", "}"),
    "names in texts": nested(r"\operatorname{\text{", 900, "½", "}}"),
    "tower of three": "9^{9^{9}}",
    "tower of four": "9^{9^{9^{9}}}",
    "plain tower": "9^9^9",
    "factorial of a factorial": "(20!)!",
    "three factorials": "((9!)!)!",
    "a long factorial": "1000000!",
    "five hundred factorials": "5" + "!" * 500,
    "a long binomial": r"\binom{10^9}{5\cdot10^8}",
    "a product": r"\prod_{k=1}^{100000}k",
    "a sum": r"\sum_{k=1}^{10000000}k",
    "a power modulo": r"7^{7^{7^7}} \bmod 10",
    "exponentials": "e^{e^{e^{e^e}}}",
    "a root of a huge number": "(10^{200000}+1)^{1/3}",
    "a tiny power": "2^{-10^{10}}",
    "an integral": r"\int_0^1 \frac{\ln(1+x)}{1+x^2}dx",
    "forty roots": nested(r"\sqrt{1+", 40, "x", "}"),
    "many roots": nested(r"\sqrt{1+", 150, "x", "}"),
    "many fractions": nested(r"\frac{1}{1+", 300, "x", "}"),
    "a determinant": r"\det\begin{pmatrix}" + CELLS + r"\end{pmatrix}",
    "a symbolic matrix": r"\begin{pmatrix}" + CELLS + r"\end{pmatrix}",
    "a trigonometric sum": "+".join(rf"\sin^2({k}x)" for k in range(50)),
    "a long sum": "1+" * 10_000 + "1",
    "many digits": "1" * 100_000,
    "a million digits": "1" * 1_000_000,
    "a long list": ",".join(map(str, range(2_000))),
    "spaces": "1 " * 9_000,
    "open parentheses": "1(" * 3_000,
    "open fractions": r"\frac{" * 3_000,
    "a polynomial power": "(x+y+z+w)^{60}-(x-y+w+z)^{60}",
    "eight variables": "(a+b+c+d+e+f+g+h)^{30}",
    "a long product": "".join(f"(x+{k})" for k in range(1, 120)),
    "a long sum of fractions": "+".join(rf"\frac{{1}}{{x+{k}}}" for k in range(1, 60)),
    "a huge angle": r"\sin(10^{100})",
    "a huge root": r"\sqrt[997]{2^{996}+1}",
    "long radicands": "+".join(rf"\sqrt{{{10**30 + k}}}" for k in range(40)),
    "many signs": r"\pm1" + r"\pm2" * 60,
    "many intervals": r"\cup".join(f"({k},{k + 1})" for k in range(400)),
    "many inequalities": "<".join(map(str, range(300))),
    "many irrational items": ",".join(rf"\sqrt{{{k}}}+\ln 2" for k in range(2, 150)),
    "many texts": "12 " + r"\text{cm}" * 500,
    "many options": r"\text{" + "a or " * 3_000 + "}",
    "many groups": "1,111" * 3_000,
    "many bars": "|x" * 40,
    "a power near e": "(1+10^{-500})^{10^{500}}",
    "many dots": "." * 15_000,
    "long exponent": "1e999999",
    "marks": "‎" * 5_000 + "½" * 3_000,
}
WHOLE = {
    "open boxes": r"\boxed{" * 20_000,
    "many boxes": r"\boxed{1}" * 20_000,
    "dollars": "$" * 100_000,
    "statements": "The answer is 5. " * 5_000,
    "words of statements": "answer is " * 20_000,
    "headings": "Final Answer: " * 8_000,
    "open thoughts": "<think>" * 20_000,
    "closed thoughts": "</think>" * 20_000,
    "open tags": "<answer>" * 20_000,
    "hashes": "#### " * 20_000,
    "numbers behind hashes": "#### 1\n" * 20_000,
    "open formulas": "answer: $" * 10_000,
    "open parentheses": "answer: \\(" * 10_000,
    "spaces": "1 " * 20_000,
    "sums": "1+" * 5_000 + "x",
    "blank lines": "\n" * 50_000,
    "stars": "is **" * 20_000,
}
GOLDS = [
    *("-7", "x+2", r"\frac13", r"\{1,2,3\}", r"(1,2)\cup(3,4)", "y=2x+1", r"\sqrt2+\ln 3"),
    *(r"x^2+y^2\le 4", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\text{Monday}", "3,4"),
]


@pytest.mark.parametrize("name", BOXED)
def test_a_boxed_bomb_is_a_wrong_answer(name: str) -> None:
    for gold in GOLDS:
        told = VERIFIER.explain(gold, f"\\boxed{{{BOXED[name]}}}")
        assert told.value == 0.0, (gold, told)


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_completion_that_is_a_bomb_is_no_right_answer(name: str) -> None:
    for gold in GOLDS:
        assert VERIFIER.explain(gold, WHOLE[name]).value == 0.0


@pytest.mark.parametrize("bracket", ["{}", "()"])
def test_redundant_brackets_of_any_depth_are_one_bracket(bracket: str) -> None:
    text = nested(bracket[0], 3_000, "9", bracket[1])
    assert VERIFIER.explain("9", f"\\boxed{{{text}}}").value == 1.0


def test_long_reasoning_before_the_box_is_read() -> None:
    assert VERIFIER.explain("9", "word " * 200_000 + r"\boxed{9}").value == 1.0


def test_a_gold_over_the_bounds_is_an_error() -> None:
    told = VERIFIER.explain(nested(r"\sqrt{1+", 200, "x", "}"), r"\boxed{1}")
    assert told.status == "error"


def test_no_gold_makes_the_verifier_fail() -> None:
    for text in [*BOXED.values(), *WHOLE.values()]:
        VERIFIER.check_gold(text[:20_000])


def test_steps_run_out() -> None:
    steps = Steps()
    steps.spend(MAX_STEPS)
    with pytest.raises(Exception, match="too many steps"):
        steps.spend()


def test_sympy_and_mpmath_are_imported_only_where_needed() -> None:
    code = (
        "import sys; from prime_verifier_math import *; v = MathVerifier(MathParams());"
        r"v.explain('x^2-1', r'\boxed{(x-1)(x+1)}'); v.explain('\\sqrt2', r'\boxed{1.41}');"
        "assert not {'sympy', 'mpmath'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
