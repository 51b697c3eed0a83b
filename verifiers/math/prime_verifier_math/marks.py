"""Answers known by a mark in their writing: digits with a base, letters of a choice.

Called by `reading.py` before tokens are made.
"""

from __future__ import annotations

import re

from prime_verifier_math import wording
from prime_verifier_math.answers import Based, Choice

MAX_MARKED = 300  # characters of an answer that may be one of these
_BASED = re.compile(
    r"(?P<sign>[-+]?)\s*\(?\s*(?P<digits>[0-9][0-9A-Za-z.]*|[A-Z][0-9A-Z]*[0-9][0-9A-Z]*)\s*\)?\s*"
    r"(?:_\s*\{?\s*\(?\s*(?P<base>\d{1,2}|[a-z]+)\s*\)?\s*\}?"
    r"|\(?\s*(?:in\s+)?base\s*-?\s*(?P<named>\d{1,2}|[a-z]+)\s*\)?)\s*\.?"
)
_BASE_NAMES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "b": 2, "h": 16, "bin": 2, "hex": 16,
    "oct": 8, "dec": 10,
}  # fmt: skip
WRAPPED = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textnormal|mbox|rm)\s*\{([^{}]*)\}")


def read_based(text: str) -> Based | None:
    """Digits with a base behind them: 101_2, A5_{11}, 12 (base 8)."""
    if ("_" not in text and "base" not in text) or len(text) > MAX_MARKED:
        return None
    match = _BASED.fullmatch(WRAPPED.sub(r"\1", text).strip())
    if match is None:
        return None
    name = match["base"] or match["named"]
    base = int(name) if name.isdigit() else _BASE_NAMES.get(name)
    digits = match["digits"].upper().lstrip("0") or "0"
    if base is None or not 2 <= base <= 36 or digits.count(".") > 1:
        return None
    if any(int(digit, 36) >= base for digit in digits if digit != "."):
        return None
    return Based(digits, base, match["sign"] == "-")


_OUTSIDE = re.compile(r"\s*+\**+\(?[A-Z][.):]\**+:?\s*+\**+(?:\$|\\\()")


def letter_outside(text: str) -> bool:
    """Whether a choice letter stands before a formula, so that it's no factor: (D) $\\frac34$."""
    return _OUTSIDE.match(text) is not None and "\\$" not in text


def read_choice(text: str) -> Choice | None:
    """A choice letter with or without what it stands for: (C), C. 42, \\textbf{(C)} 42."""
    if len(text) > MAX_MARKED:
        return None
    plain = WRAPPED.sub(r"\1", text).strip()
    if re.fullmatch(r"\(?[A-Z]\)?\.?", plain):
        return Choice(plain.strip("()."))
    if re.match(r"(?:option|choice|answer)?\s*\(?[A-Z][).:]", plain, re.IGNORECASE):
        if (
            re.match(r"\([A-Z]\)\s*[-+*/^_=(]|\(?[A-Z][).:]?\s*(?:\\|[-+=^])", plain)
            and "\\text" not in text
        ):
            return None
        return wording.choice_of(plain)
    return wording.choice_of(plain) if plain.lower().startswith(("option", "choice")) else None
