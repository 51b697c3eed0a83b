r"""Answers made to hang, bomb or fool a grader: the ladder of the field's bug reports.

Every rung is a (name, gold, completion, value that a careful person gives or None). Most were
found hanging math-verify, verl or PRIME; numbers and shapes are our own.
"""

from __future__ import annotations

from dataclasses import dataclass

BOX = r"Hence \boxed{{{}}}."


@dataclass(frozen=True, slots=True)
class Rung:
    """One hostile completion, and the value it deserves; None where either may stand."""

    name: str
    gold: str
    completion: str
    value: float | None = 0.0


def _boxed(name: str, answer: str, gold: str = "7", value: float | None = 0.0) -> Rung:
    return Rung(name, gold, BOX.format(answer), value)


def ladder() -> list[Rung]:
    """All rungs."""
    return [*_numbers(), *_evaluation(), *_nesting(), *_length(), *_text()]


def _numbers() -> list[Rung]:
    return [
        _boxed("tower of three", "9^{9^{9}}"),
        _boxed("tower of four", "9^{9^{9^{9}}}"),
        Rung("tower in plain text", "7", "Answer: 9^9^9^9"),
        _boxed("tower of fifty", "2^{" * 50 + "2" + "}" * 50),
        _boxed("negative tower", "2^{-10^{10}}"),
        _boxed("factorial of a factorial", "(20!)!"),
        _boxed("three factorials", "((9!)!)!"),
        _boxed("factorial of a million", "1000000!"),
        _boxed("factorial signs", "9" + "!" * 60),
        _boxed("huge binomial", r"\binom{10^{9}}{5 \cdot 10^{8}}"),
        _boxed("root of a huge power", r"\sqrt[3]{10^{200000}+1}"),
        _boxed("exponentials", "e^{e^{e^{e^{e}}}}"),
        _boxed("tower with a remainder", r"7^{7^{7^{7}}} \bmod 1000"),
        _boxed("huge decimal exponent", "1e999999999"),
        _boxed("a hundred thousand digits", "7" * 100_000),
        _boxed("a million digits", "7" * 1_000_000),
        _boxed("many decimals", "7." + "0" * 100_000 + "1"),
        _boxed("fraction of long numbers", rf"\frac{{{'3' * 50_000}}}{{{'7' * 50_000}}}"),
    ]


def _evaluation() -> list[Rung]:
    square = " \\\\ ".join(" & ".join(f"a_{{{i}{j}}}" for j in range(12)) for i in range(12))
    waves = "+".join(rf"\sin({k}x)\cos({k + 1}x)" for k in range(50))
    power = "(x+y+z+w)^{60}"
    return [
        _boxed("long product", r"\prod_{k=1}^{100000} k"),
        _boxed("long sum", r"\sum_{k=1}^{10000000} k"),
        _boxed("sum restated", r"\sum_{k=1}^{10} k", gold="55"),
        _boxed("hard integral", r"\int_0^{\infty} \frac{\sin(x^7) e^{-x^3}}{1+x^{11}} \, dx"),
        _boxed("another", r"\int_0^1 \ln(\sin(\sqrt{x^5+\tan x})) \, dx"),
        _boxed("limit", r"\lim_{n \to \infty} \frac{n!}{n^n}", gold="0"),
        _boxed("symbolic determinant", rf"\det\begin{{pmatrix}}{square}\end{{pmatrix}}"),
        _boxed("matrix of symbols", rf"\begin{{pmatrix}}{square}\end{{pmatrix}}"),
        _boxed("trigonometric sum", waves, gold="x"),
        _boxed("power of a sum less itself", f"{power}-{power}", gold="0", value=None),
        _boxed("power of a sum", power, gold="x"),
        _boxed("nested radicals equal to 1", r"\sqrt[3]{2+\sqrt{5}}+\sqrt[3]{2-\sqrt{5}}", gold="1",
               value=None),
    ]  # fmt: skip


def _nesting() -> list[Rung]:
    return [
        _boxed("forty radicals", r"\sqrt{1+" * 40 + "1" + "}" * 40),
        _boxed("150 radicals", r"\sqrt{1+" * 150 + "1" + "}" * 150),
        _boxed("300 fractions", r"\frac{1}{1+" * 300 + "1" + "}" * 300),
        _boxed("500 parentheses", "(" * 500 + "8" + ")" * 500),
        _boxed("2000 braces", "{" * 2000 + "8" + "}" * 2000),
        _boxed("open fractions", r"\frac{" * 3000),
        _boxed("open calls", "1(" * 3000),
        _boxed("nested lists", r"\{" * 1000 + "1" + r"\}" * 1000),
        Rung("unclosed boxes", "7", r"\boxed{" * 20_000),
        Rung("nested boxes", "7", r"\boxed{" * 2000 + "8" + "}" * 2000),
    ]


def _length() -> list[Rung]:
    return [
        _boxed("ten thousand terms", "+".join(["1"] * 10_000)),
        _boxed("terms and a symbol", "1+" * 5000 + "x"),
        _boxed("numbers between spaces", "1 " * 20_000),
        _boxed("list of 2000", ", ".join(map(str, range(2000))), gold="1, 2, 3"),
        _boxed("list of 20000", ", ".join(map(str, range(20_000))), gold="1, 2, 3"),
        _boxed("chain of equals", "=".join(["7"] * 3000) + "=8"),
        _boxed("chain of signs", "x<" * 3000 + "1", gold="x<1"),
        _boxed("minus signs", "-" * 5001 + "7"),
        Rung("many boxes", "7", r"\boxed{1} and then " * 20_000),
        Rung("many statements", "7", "The answer is 8. " * 20_000),
    ]


def _text() -> list[Rung]:
    prose = "We count the cases one by one and add them up. "
    return [
        Rung("long prose", "7", prose * 9000 + r"\boxed{7}", 1.0),
        Rung("long prose without an answer", "7", prose * 9000),
        Rung("many thoughts", "7", "<think>7</think>" * 20_000),
        Rung("unclosed thought", "7", "<think>" * 20_000 + r"\boxed{7}"),
        Rung("dollars", "7", "$" * 100_000),
        Rung("backslashes", "7", "\\" * 100_000),
        Rung("hashes", "7", "#" * 100_000),
        Rung("spaces", "7", " " * 100_000),
        Rung("line feeds", "7", "\n" * 100_000),
        _boxed("dollars in a box", "$" * 100_000),
        _boxed("prices in a box", "$5" * 50_000),
        _boxed("formulas in a box", "so $1$ and " * 10_000),
        Rung("digits and commas", "7", "1,1" * 50_000),
        Rung("code", "7", BOX.format(r"\pi if __import__('os').system('true') else 7")),
        Rung("attributes", "0", BOX.format("[].__class__.__base__.__subclasses__() or 0")),
        Rung("lone surrogate and NUL", "7", "\ud800\x00" + BOX.format("\x007\ud800"), None),
    ]
