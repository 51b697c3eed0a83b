"""A position in tokens, and how numbers are read there: literals, repeating, mixed numbers.

The base of the expression reader; it computes nothing but literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from prime_verifier_math.bounds import MAX_DIGITS, MAX_EXPONENT, OverBound, Unreadable
from prime_verifier_math.literals import repeated_block, repeating
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Node, Num

END = Token("end", "")
CLOSERS = {"(": ")", "[": "]", "{": "}"}


def literal(text: str) -> Num:
    """An exact literal: digits, decimals, an exponent of ten."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, dot, decimals = mantissa.partition(".")
    if len(mantissa) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent or 0)) > MAX_EXPONENT:
        raise OverBound("too many digits")
    if not exponent and not dot:
        return Num(Fraction(int(whole)))
    power = int(exponent or 0) - len(decimals)
    digits = int((whole or "0") + decimals)
    value = Fraction(digits * 10**power) if power >= 0 else Fraction(digits, 10**-power)
    return Num(value, len(decimals) if dot and not exponent else None)


class Cursor:
    """A position in the tokens; depth and open bars are counted for the reader above."""

    def __init__(self, made: Sequence[Token]) -> None:
        self._tokens = list(made)
        self._at = 0
        self._depth = 0
        self._bars = 0

    def peek(self, ahead: int = 0) -> Token:
        """The token to come, or END."""
        index = self._at + ahead
        return self._tokens[index] if index < len(self._tokens) else END

    def take(self) -> Token:
        """The next token, consumed."""
        token = self.peek()
        self._at += 1
        return token

    def expect(self, char: str) -> None:
        """Consume this character or fail."""
        token = self.take()
        if token.text != char or token.kind not in ("op", "cmd"):
            raise Unreadable(f"{char!r} expected, not {token.text[:20]!r}")

    def _number(self, token: Token) -> Node:
        """A literal, a repeating decimal, or a mixed number."""
        repeated = self._repeating(token.text)
        if repeated is not None:
            return repeated
        number = literal(token.text)
        if number.value.denominator == 1 and number.places is None:
            fraction = self._mixed_part()
            if fraction is not None:
                return Num(number.value + fraction)
        return number

    def _repeating(self, text: str) -> Num | None:
        """0.1\\overline{6}, 0.1(6), 0.1\\dot{6}, 0.1666\\ldots; None for any other number."""
        whole, dot, fixed = text.partition(".")
        ahead = 0
        if not dot:
            if not self.peek().is_op("."):
                return None
            ahead = 1
        if len(text) > MAX_DIGITS or "e" in text.lower():
            return None
        token = self.peek(ahead)
        if token.is_cmd("ldots") or (
            token.is_op(".") and self.peek(ahead + 1).is_op(".") and dot and self.peek(2).is_op(".")
        ):
            return self._dotted(whole, fixed, token) if dot else None
        block = ""
        if token.is_cmd("overline", "dot"):
            width = 0
            while self.peek(ahead).is_cmd("overline", "dot"):
                digits, width = self._digits_after(ahead + 1)
                block += digits
                ahead += 1 + width
                if not width:
                    raise Unreadable("a bar over no digits")
        elif token.is_op("(") and not token.space:
            digits, width = self._digits_after(ahead)
            if not width or self.peek(ahead + width).is_op("^!"):
                return None
            block = digits
            ahead += width
        else:
            return None
        self._at += ahead
        if self.peek().kind == "num":
            raise Unreadable("digits behind a block that repeats for ever")
        return Num(repeating(whole, fixed, block))

    def _dotted(self, whole: str, fixed: str, token: Token) -> Num:
        split = repeated_block(fixed)
        if split is None:
            raise Unreadable("a decimal that goes on, one can't tell how")
        self._at += 1 if token.kind == "cmd" else 3
        return Num(repeating(whole, *split))

    def _digits_after(self, ahead: int) -> tuple[str, int]:
        """Digits in a group at `ahead`, and how many tokens they take; 0 for none."""
        token = self.peek(ahead)
        if token.kind == "num" and token.text.isdigit():
            return token.text, 1
        closer = CLOSERS.get(token.text) if token.kind == "op" else None
        inner = self.peek(ahead + 1)
        if (
            closer
            and inner.kind == "num"
            and inner.text.isdigit()
            and self.peek(ahead + 2).is_op(closer)
            and len(inner.text) <= MAX_DIGITS
        ):
            return inner.text, 3
        return "", 0

    def _mixed_part(self) -> Fraction | None:
        """The proper fraction of integers behind an integer, in LaTeX or as `1/2`."""
        token = self.peek()
        if token.is_cmd("frac"):
            start = self._at
            self.take()
            top = self._fraction_digits()
            bottom = self._fraction_digits()
            if top and bottom and int(top) < int(bottom) and not self.peek().is_op("^!"):
                return Fraction(int(top), int(bottom))
            self._at = start
            return None
        slash, last = self.peek(1), self.peek(2)
        if (
            (
                token.kind == "num"
                and token.space
                and slash.is_op("/")
                and last.kind == "num"
                and token.text.isdigit()
                and last.text.isdigit()
                and len(last.text) < 10
            )
            and len(token.text) < 10
            and int(token.text) < int(last.text)
        ):
            self._at += 3
            return Fraction(int(token.text), int(last.text))
        return None

    def _fraction_digits(self) -> str:
        """Digits as an argument of \\frac, "" for anything else."""
        token = self.peek()
        if token.is_op("{") and self.peek(1).kind == "num" and self.peek(2).is_op("}"):
            text = self.peek(1).text
            self._at += 3
        elif token.kind == "num":
            text = self._split_digit()
        else:
            return ""
        return text if text.isdigit() and len(text) <= MAX_DIGITS else ""

    def _split_digit(self) -> str:
        """The first digit of a number that is an argument without braces, as LaTeX reads it."""
        token = self.take()
        if len(token.text) > 1 and token.text.isdigit():
            self._at -= 1
            self._tokens[self._at] = Token("num", token.text[1:])
        return token.text[:1] if token.text.isdigit() else token.text
