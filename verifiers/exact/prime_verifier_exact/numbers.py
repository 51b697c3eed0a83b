"""Numbers as people write them at the end of an answer, and their exact comparison.

Called by the number verifier; works on digits as text, so that 10,000 of them are no problem and
nothing is ever rounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CURRENCY = "$€£¥"
WRAPPING = "*_`$"  # markdown and LaTeX around a number: **42**, $42$
MAX_TOKEN = 100_000  # characters; longer ones are no answer
MAX_FRACTION = 1000  # digits of either part, since fractions are multiplied out

# ASCII digits only, thousands grouped in threes or not at all, at most one decimal point.
NUMBER = re.compile(
    r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})++|[0-9]*+)(?:\.(?P<decimals>[0-9]*+))?"
    r"(?:/(?P<divisor>[0-9]++))?"
)
# For the fallback. A hyphen after a digit, letter or bracket is a minus between two numbers or a
# dash, not a sign.
ANYWHERE = re.compile(
    rf"(?:(?<![0-9A-Za-z)\]}}])[-+])?[{CURRENCY}]?[0-9][0-9,]*+(?:\.[0-9]++)?(?:/[0-9]++)?"
)


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number: sign, digits without leading or trailing zeros, and a divisor.

    Two plain decimals are equal exactly if these fields are; fractions are multiplied out.
    """

    negative: bool
    whole: str
    decimals: str
    divisor: str = ""

    def equals(self, other: Number) -> bool:
        """Exact equality."""
        if not self.divisor and not other.divisor:
            return self == other
        if self.negative != other.negative:
            return False
        if max(self._digits(), other._digits()) > MAX_FRACTION:
            return False
        return self._numerator() * other._denominator() == other._numerator() * self._denominator()

    def _digits(self) -> int:
        return max(len(self.whole) + len(self.decimals), len(self.divisor))

    def _numerator(self) -> int:
        return int(self.whole + self.decimals or "0")

    def _denominator(self) -> int:
        return int(self.divisor or "1") * int(10 ** len(self.decimals))


def parse(token: str) -> Number | None:
    """The number that a token is, or None.

    Takes a sign, a currency sign on either side of it, thousands commas, decimals, a/b, a percent
    sign (which changes nothing), markdown or dollar signs around it, and a full stop or comma
    behind it. No exponents, no words, no spaces.
    """
    if len(token) > MAX_TOKEN:
        return None
    text = token.strip(WRAPPING).rstrip(".,;:!").strip(WRAPPING).removesuffix("%")
    negative = text.startswith("-")
    text = text.removeprefix("-") if negative else text.removeprefix("+")
    if text[:1] and text[0] in CURRENCY:
        text = text[1:]
        # "$-5": the sign may stand behind the currency, but only once.
        if not negative and text.startswith("-"):
            negative, text = True, text[1:]
    match = NUMBER.fullmatch(text)
    if match is None:
        return None
    whole, decimals = match["whole"].replace(",", ""), match["decimals"] or ""
    if not whole and not decimals:
        return None
    divisor = match["divisor"]
    if divisor is not None and not divisor.strip("0"):
        return None
    whole, decimals = whole.lstrip("0"), decimals.rstrip("0")
    divisor = (divisor or "").lstrip("0")
    return Number(
        negative and bool(whole or decimals), whole, decimals, "" if divisor == "1" else divisor
    )


def after_marker(text: str, marker: str) -> Number | None:
    """The number directly behind the last marker, or None where none stands there."""
    _, found, rest = text.rpartition(marker)
    if not found:
        return None
    tokens = rest[: MAX_TOKEN + 100].split(None, 1)
    return parse(tokens[0]) if tokens else None


def last_number(text: str) -> Number | None:
    """The last number anywhere in the text, or None."""
    last = None
    for match in ANYWHERE.finditer(text):
        last = match
    return None if last is None else parse(last[0])
