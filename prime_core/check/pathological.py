"""Completions that have broken public graders: size, nesting, digits, bytes that aren't text.

Rules R01 to R03 score them. Each has a recipe, a Python expression, since nobody pastes a megabyte.
"""

from __future__ import annotations

from dataclasses import dataclass

from prime_core.check.policies import Policy


@dataclass(frozen=True, slots=True)
class _Recipe:
    name: str
    expression: str

    def policy(self) -> Policy:
        # The expressions stand below, in this file.
        text = eval(self.expression, {"__builtins__": {}})  # noqa: S307
        return Policy(self.name, text, self.expression)


_CORES: tuple[_Recipe, ...] = (
    _Recipe("one megabyte of text", "'word ' * 200_000"),
    _Recipe("one megabyte of digits", "'9' * 1_000_000"),
    _Recipe("10,000 digits", "'7' * 10_000"),
    _Recipe("a fraction of long numbers", "'1' * 5_000 + '/' + '3' * 5_000"),
    _Recipe("an exponent tower", "'9' + '**9' * 20"),
    _Recipe("a LaTeX exponent tower", "'9^{' * 200 + '9' + '}' * 200"),
    _Recipe("a huge exponent", "'10**1000000000'"),
    _Recipe("a huge float", "'1e999999999'"),
    _Recipe("a huge factorial", "'100000000!'"),
    _Recipe("deep parentheses", "'(' * 20_000 + '1' + ')' * 20_000"),
    _Recipe("deep brackets", "'[' * 100_000"),
    _Recipe("deep JSON", "'[' * 5_000 + '1' + ']' * 5_000"),
    _Recipe("deep boxes", "'\\\\boxed{' * 5_000 + '1' + '}' * 5_000"),
    _Recipe("open boxes", "'\\\\boxed{' * 20_000"),
    _Recipe("deep fractions", "'\\\\frac{1}{' * 500 + '2' + '}' * 500"),
    _Recipe("nested roots", "'\\\\sqrt{' * 500 + '2' + '}' * 500"),
    _Recipe("many tags", "'<answer>' * 20_000"),
    _Recipe("a NUL", "'1\\x002'"),
    _Recipe("only NULs", "'\\x00' * 1_000"),
    _Recipe("a lone surrogate", "'\\ud800'"),
    _Recipe("a number before a lone surrogate", "'12\\udfff'"),
    _Recipe("a byte order mark", "'\\ufeff1'"),
    _Recipe("right-to-left marks", "'\\u202e12\\u202c'"),
    _Recipe("digits of another script", "'\\u0663\\u0664'"),
    _Recipe("full-width digits", "'\\uff11\\uff12'"),
    _Recipe("combining marks", "'1' + '\\u0301' * 10_000"),
    _Recipe("line separators", "'1\\u2028' * 1_000"),
    _Recipe("white space", "' ' * 500_000 + '1'"),
    _Recipe("line feeds", "'\\n' * 500_000"),
    _Recipe("a format string", "'{0.__class__.__mro__}%s%n'"),
    _Recipe("backslashes", "'\\\\' * 100_000"),
    _Recipe("dollars", "'$' * 100_000"),
    _Recipe("underscores between digits", "'1_0' * 10"),
    _Recipe("not a number", "'nan'"),
    _Recipe("minus zero", "'-0'"),
    _Recipe("a regular expression's nightmare", "'a' * 50_000 + '!'"),
    _Recipe("minus signs", "'-' * 50_000 + '1'"),
    _Recipe("commas", "'1,' * 100_000"),
    _Recipe("a program that loops", "'```python\\nwhile True: pass\\n```'"),
    _Recipe("a program that takes memory", "'```python\\nx = [0] * 10**11\\n```'"),
    _Recipe("a program that recurses", "'```python\\ndef f(): return f()\\nf()\\n```'"),
)


def completions() -> list[Policy]:
    """Every pathological completion."""
    return [each.policy() for each in _CORES]


def wrapped(shape: str) -> list[Policy]:
    """The shorter ones where this environment looks for an answer."""
    if shape == "{}":
        return []
    made = []
    for each in _CORES:
        policy = each.policy()
        if len(policy.text) <= 100_000:
            recipe = f"{shape!r}.format({each.expression})"
            made.append(Policy(f"{each.name}, in place", shape.format(policy.text), recipe))
    return made
