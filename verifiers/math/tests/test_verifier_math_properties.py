"""Each kind with random values: equivalent writings are accepted, near misses refused."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st
from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())
INTEGERS = st.integers(-(10**9), 10**9)
SMALL = st.integers(2, 60)
LETTERS = st.sampled_from("abcdhkmnpqrstuvwxyz")


def accepted(gold: str, answer: str) -> bool:
    assert VERIFIER.check_gold(gold).ok, gold
    told = VERIFIER.explain(gold, f"Hence the answer is $\\boxed{{{answer}}}$.")
    assert told.status == "scored"
    return told.value == 1.0


def grouped(value: int, separator: str) -> str:
    return f"{value:,}".replace(",", separator)


@given(INTEGERS)
def test_integers(value: int) -> None:
    for writing in (f"{value}.0", f"{{{value}}}", f"({value})", f"x = {value}", f"{value}."):
        assert accepted(str(value), writing)
    for miss in (value + 1, value - 1, value * 10 + 1):
        assert not accepted(str(value), str(miss))
    if value:
        assert not accepted(str(value), str(-value))
        assert not accepted(str(value), f"\\pm {abs(value)}")


@given(st.integers(1000, 10**12), st.sampled_from([",", "{,}", r"\,", " ", r",\!", "~", "'"]))
def test_separators(value: int, separator: str) -> None:
    assert accepted(str(value), grouped(value, separator))
    assert not accepted(str(value), grouped(value + 1, separator))
    if value >= 10**6:
        assert accepted(str(value), grouped(value, "."))


@given(st.integers(0, 999), st.integers(0, 99))
def test_a_pair_is_no_number(one: int, two: int) -> None:
    assert not accepted(f"{one}{two}", f"{one}, {two}")
    assert not accepted(f"{one}, {two}", f"{one}{two}")


@given(st.integers(-500, 500), st.integers(1, 500), st.integers(2, 9))
def test_fractions(top: int, bottom: int, factor: int) -> None:
    gold = f"\\frac{{{top}}}{{{bottom}}}"
    assert accepted(gold, f"{top}/{bottom}")
    assert accepted(gold, f"\\dfrac{{{top * factor}}}{{{bottom * factor}}}")
    assert accepted(gold, f"\\frac{{{-top}}}{{{-bottom}}}")
    assert not accepted(gold, f"\\frac{{{top + 1}}}{{{bottom}}}")
    assert not accepted(gold, f"\\frac{{{top * factor + 1}}}{{{bottom * factor}}}")
    if top and abs(top) != bottom:
        assert not accepted(gold, f"\\frac{{{bottom}}}{{{top}}}")


@given(st.integers(1, 99), st.integers(1, 50), st.integers(2, 60))
def test_mixed_numbers(whole: int, top: int, bottom: int) -> None:
    assume(top < bottom)
    gold = f"\\frac{{{whole * bottom + top}}}{{{bottom}}}"
    assert accepted(gold, f"{whole}\\frac{{{top}}}{{{bottom}}}")
    assert accepted(gold, f"{whole} {top}/{bottom}")
    assert accepted("-" + gold, f"-{whole}\\frac{{{top}}}{{{bottom}}}")
    assert not accepted(gold, f"{whole + 1}\\frac{{{top}}}{{{bottom}}}")


@given(st.integers(0, 99), st.text("0123456789", max_size=3), st.text("0123456789", min_size=1,
                                                                      max_size=4))  # fmt: skip
def test_repeating_decimals(whole: int, fixed: str, block: str) -> None:
    nines = 10 ** len(block) - 1
    value = (Fraction(int(f"{whole}{fixed}")) + Fraction(int(block), nines)) / 10 ** len(fixed)
    gold = f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    assert accepted(gold, f"{whole}.{fixed}\\overline{{{block}}}")
    assert accepted(gold, f"{whole}.{fixed}({block})")
    if block.strip("0"):
        assert not accepted(gold, f"{whole}.{fixed}{block}")


@given(st.integers(1, 10**6), st.integers(0, 4))
def test_percentages(hundredths: int, places: int) -> None:
    percent = Fraction(hundredths, 10**places)
    gold = f"\\frac{{{percent.numerator}}}{{{percent.denominator * 100}}}"
    text = f"{hundredths / 10**places:.{places}f}"
    assert accepted(gold, f"{text}\\%")
    assert accepted(gold, f"{text}\\text{{ percent}}")
    assert accepted(f"{text}\\%", gold)
    assert not accepted(gold, text)
    assert not accepted(text, f"{text}\\%")


UNITS = [
    ("m", "cm", 100),
    ("km", "m", 1000),
    ("hours", "minutes", 60),
    ("kg", "g", 1000),
    ("feet", "inches", 12),
    ("L", "mL", 1000),
]


@given(st.integers(1, 10**6), st.sampled_from(UNITS))
def test_units(value: int, units: tuple[str, str, int]) -> None:
    large, small, factor = units
    gold = f"{value}\\text{{ {large}}}"
    assert accepted(gold, str(value))
    assert accepted(str(value), gold)
    assert accepted(gold, f"{value * factor}\\text{{ {small}}}")
    assert not accepted(gold, f"{value}\\text{{ {small}}}")
    assert not accepted(gold, f"{value + 1}\\text{{ {large}}}")
    assert not accepted(gold, f"{value}\\text{{ {large}}}^4")


@given(st.integers(1, 999), LETTERS)
def test_a_letter_is_never_dropped(value: int, letter: str) -> None:
    assert accepted(f"{value}{letter}", f"{letter}\\cdot {value}")
    assert not accepted(f"{value}{letter}", str(value))
    assert not accepted(str(value), f"{value}{letter}")


@given(st.integers(1, 10**5), st.integers(0, 99))
def test_money(whole: int, cents: int) -> None:
    amount = f"{whole}.{cents:02d}"
    assert accepted(f"\\${amount}", amount)
    assert accepted(amount, f"\\${amount}")
    assert accepted(f"\\${amount}", f"{whole * 100 + cents}\\text{{ cents}}")
    assert not accepted(f"\\${amount}", f"{whole * 100 + cents}")
    assert not accepted(str(whole), f"{whole}\\text{{ cents}}")


@given(st.integers(1, 720))
def test_degrees_and_radians(degrees: int) -> None:
    turned = Fraction(degrees, 180)
    radians = f"\\frac{{{turned.numerator}\\pi}}{{{turned.denominator}}}"
    assert accepted(f"{degrees}^\\circ", str(degrees))
    assert accepted(str(degrees), f"{degrees}^{{\\circ}}")
    assert accepted(radians, f"{degrees}^\\circ")
    assert accepted(f"{degrees}^\\circ", radians)
    assert not accepted(f"{degrees}^\\circ", f"{degrees}\\text{{ radians}}")
    assert not accepted(radians, str(degrees))


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=5, unique=True), st.randoms())
def test_lists_sets_and_tuples(values: list[int], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    plain, other = (", ".join(map(str, one)) for one in (values, shuffled))
    assert accepted(plain, other)
    assert accepted(f"\\{{{plain}\\}}", f"\\{{{other}\\}}")
    assert accepted(f"({plain})", f"\\left({plain}\\right)")
    assert accepted(f"({plain})", f"({other})") == (values == shuffled)
    assert not accepted(plain, ", ".join(map(str, values[1:])))
    assert not accepted(plain, f"{plain}, 1000")
    assert not accepted(f"({plain})", f"\\{{{plain}\\}}")
    assert not accepted(f"\\{{{plain}\\}}", f"({plain})")
    assert not accepted(str(values[0]), plain)


@given(st.integers(-99, 98), st.integers(1, 99), st.booleans(), st.booleans())
def test_intervals(low: int, width: int, left: bool, right: bool) -> None:
    high = low + width
    gold = f"{'[' if left else '('}{low},{high}{']' if right else ')'}"
    signs = ("\\le" if left else "<", "\\le" if right else "<")
    assert accepted(gold, f"{low} {signs[0]} x {signs[1]} {high}")
    assert accepted(gold, f"x \\in {gold}")
    for other_left in (True, False):
        for other_right in (True, False):
            other = f"{'[' if other_left else '('}{low},{high}{']' if other_right else ')'}"
            assert accepted(gold, other) == ((left, right) == (other_left, other_right))
    assert not accepted(gold, gold.replace(f"{high}", f"{high + 1}"))


@given(st.integers(-50, 50), st.sampled_from(["<", ">", "\\le", "\\ge"]), st.integers(2, 9))
def test_inequalities(end: int, sign: str, factor: int) -> None:
    flipped = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
    assert accepted(f"x {sign} {end}", f"{end} {flipped[sign]} x")
    assert accepted(f"x {sign} {end}", f"{factor}x {sign} {factor * end}")
    assert accepted(f"x {sign} {end}", f"-{factor}x {flipped[sign]} {-factor * end}")
    for other in flipped:
        assert accepted(f"x {sign} {end}", f"x {other} {end}") == (other == sign)
    assert not accepted(f"x {sign} {end}", f"y {sign} {end}")


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9), st.integers(2, 5))
def test_polynomials_and_equations(a: int, b: int, c: int, k: int) -> None:
    gold = f"{c}x^2+{c * (a + b)}x+{c * a * b}".replace("+-", "-")
    factored = f"{c}(x+{a})(x+{b})".replace("+-", "-")
    assert accepted(gold, factored)
    assert not accepted(gold, factored + "+1")
    line = f"y = {c}x + {b}"
    assert accepted(line, f"{k * c}x - {k}y + {k * b} = 0".replace("+ -", "- "))
    assert accepted(line, f"{c}x + {b}")
    assert not accepted(line, f"y = {c}x + {b + 1}")
    assert not accepted(line, f"{c}x + {b} = 0")


@given(st.integers(-20, 20), st.integers(-20, 20).filter(bool))
def test_complex_numbers(real: int, imaginary: int) -> None:
    gold = f"{real}+{imaginary}i".replace("+-", "-")
    assert accepted(gold, f"{imaginary}i+{real}")
    assert accepted(gold, f"{real} + \\sqrt{{-{imaginary**2}}}") == (imaginary > 0)
    assert not accepted(gold, f"{real}+{-imaginary}i".replace("+-", "-"))


@given(st.integers(1, 200), st.sampled_from([2, 3, 5, 6, 7, 10, 11, 13]), st.integers(2, 12))
def test_roots(factor: int, radicand: int, scale: int) -> None:
    gold = f"{factor}\\sqrt{{{radicand}}}"
    assert accepted(gold, f"\\sqrt{{{factor**2 * radicand}}}")
    assert accepted(gold, f"\\frac{{{factor * radicand}}}{{\\sqrt{{{radicand}}}}}")
    assert not accepted(gold, f"\\sqrt{{{factor**2 * radicand + 1}}}")
    assert not accepted(gold, f"{(factor**2 * radicand) ** 0.5:.{scale}f}")


@given(st.lists(st.lists(INTEGERS, min_size=2, max_size=2), min_size=2, max_size=2))
def test_matrices(rows: list[list[int]]) -> None:
    def matrix(name: str, cells: list[list[int]]) -> str:
        body = " \\\\ ".join(" & ".join(map(str, row)) for row in cells)
        return f"\\begin{{{name}}} {body} \\end{{{name}}}"

    gold = matrix("pmatrix", rows)
    assert accepted(gold, matrix("bmatrix", rows))
    turned = [list(column) for column in zip(*rows, strict=True)]
    assert accepted(gold, matrix("pmatrix", turned)) == (turned == rows)
    assert not accepted(gold, matrix("vmatrix", rows))


@given(st.integers(0, 23), st.integers(0, 59))
def test_times(hour: int, minute: int) -> None:
    assert accepted(f"{hour}\\!:\\!{minute:02d}", f"{hour}:{minute:02d}")
    assert not accepted(f"{hour}:{minute:02d}", f"{hour}:{(minute + 1) % 60:02d}")
    assert not accepted(f"{hour}:{minute:02d}", f"{hour}{minute:02d}")


@given(st.integers(1, 10**6), st.integers(2, 9), st.integers(2, 9))
def test_bases(value: int, base: int, other: int) -> None:
    digits = ""
    while value:
        digits = str(value % base) + digits
        value //= base
    assert accepted(f"{digits}_{base}", f"{digits}_{{{base}}}")
    assert accepted(f"{digits}_{base}", digits)
    if other > int(max(digits)):
        assert accepted(f"{digits}_{base}", f"{digits}_{other}") == (base == other)


@given(SMALL, SMALL, SMALL)
def test_hedges_win_nothing(one: int, two: int, three: int) -> None:
    assume(len({one, two, three}) == 3)
    for text in (
        f"\\boxed{{{one}}} or \\boxed{{{two}}}",
        f"\\boxed{{{two}}} \\boxed{{{one}}} \\boxed{{{three}}}",
        f"\\boxed{{{one} \\text{{ or }} {two}}}",
        f"\\boxed{{{two}, {one}}}",
        f"The answer is {one} or {two}.",
        f"The answer is {two}, or {one}, or {three}.",
        f"\\boxed{{x = {two} = {one}}}",
        f"\\boxed{{{two} = {one}}}",
        f"<think>\\boxed{{{one}}}</think>\\boxed{{{two}}}",
        f"<think>\\boxed{{{one}}}",
        f"\\boxed{{{one}}} is wrong. The answer is {two}.",
    ):
        assert VERIFIER.explain(str(one), text).value == 0.0, text


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=9))
def test_words_are_no_products(word: str) -> None:
    turned = word[::-1]
    assume(turned != word)
    assert accepted(f"\\text{{{word}}}", f"\\text{{{word.capitalize()}}}")
    assert not accepted(f"\\text{{{word}}}", f"\\text{{{turned}}}")
    assert not accepted(f"\\text{{{word}}}", turned)
