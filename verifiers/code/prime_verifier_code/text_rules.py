"""How a program's standard output is held against the expected one, outside every jail.

Called by the judge with raw bytes; every leniency is an option with a name, and the defaults are
those of docs/reference/code-rules.md.
"""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from typing import Literal

from pydantic import Field

from prime_core.api import Params

DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
INTEGER = re.compile(r"[+-]?[0-9]+")
BLANKS = " \t\n\r\f\v"  # ASCII only: no folding of other scripts' spaces
TOKEN_BREAK = re.compile(r"[ \t\f\v]+")
MAX_NUMBER = 10_000  # characters of a token read as a number; longer ones are compared as text
ARITHMETIC = decimal.Context(prec=60, Emax=10**7, Emin=-(10**7), traps=[])


class TextRules(Params):
    """Options of the comparison of standard output."""

    mode: Literal["tokens", "lines", "bytes"] = Field(
        default="tokens",
        description="tokens: line by line, blanks between tokens don't count; lines: stripped "
        "lines must be equal as text; bytes: every byte counts",
    )
    ignore_case: bool = Field(default=False, description="YES equals Yes; off: case counts")
    ignore_blank_lines: bool = Field(
        default=False, description="leave out empty lines on both sides"
    )
    unordered_lines: bool = Field(default=False, description="the same lines in any order")
    numbers: bool = Field(
        default=True, description="tokens that are equal numbers are equal: 7 and 7.0"
    )
    float_tolerance: float = Field(
        default=1e-6,
        ge=0,
        lt=1,
        description="|a - b| <= tolerance * max(1, |b|), only where the expected token is written "
        "with a point or an exponent; 0 turns it off",
    )


def same_text(output: bytes, expected: str, rules: TextRules) -> bool:
    """True where the output is the expected one under the rules; never raises.

    Args:
        output: what the program wrote, raw.
        expected: the expected output.
    """
    if rules.mode == "bytes":
        return output == expected.encode("utf-8")
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError:
        return False
    found, wanted = _lines(text, rules), _lines(expected, rules)
    if rules.unordered_lines:
        found, wanted = sorted(found), sorted(wanted)
    return len(found) == len(wanted) and all(
        _same_line(one, other, rules) for one, other in zip(found, wanted, strict=True)
    )


def _lines(text: str, rules: TextRules) -> list[str]:
    if rules.ignore_case:
        text = text.lower()
    lines = [line.strip(BLANKS) for line in text.replace("\r\n", "\n").strip(BLANKS).split("\n")]
    return [line for line in lines if line] if rules.ignore_blank_lines else lines


def _same_line(found: str, wanted: str, rules: TextRules) -> bool:
    if found == wanted:
        return True
    if rules.mode == "lines":
        return False
    ours, theirs = TOKEN_BREAK.split(found), TOKEN_BREAK.split(wanted)
    return len(ours) == len(theirs) and all(
        same_token(one, other, rules) for one, other in zip(ours, theirs, strict=True)
    )


def same_token(found: str, wanted: str, rules: TextRules) -> bool:
    """Equal as text, or equal numbers, or close ones where the expected one is a decimal."""
    if found == wanted:
        return True
    if not rules.numbers or max(len(found), len(wanted)) > MAX_NUMBER:
        return False
    if not (DECIMAL.fullmatch(found) and DECIMAL.fullmatch(wanted)):
        return False
    a, b = Decimal(found), Decimal(wanted)
    if a == b:
        return True
    if not rules.float_tolerance or INTEGER.fullmatch(wanted):
        return False
    return _close(a, b, rules.float_tolerance)


def _close(a: Decimal, b: Decimal, tolerance: float) -> bool:
    gap = ARITHMETIC.abs(ARITHMETIC.subtract(a, b))
    allowed = ARITHMETIC.multiply(
        Decimal(repr(tolerance)), ARITHMETIC.max(Decimal(1), ARITHMETIC.abs(b))
    )
    return gap.is_finite() and allowed.is_finite() and gap <= allowed
