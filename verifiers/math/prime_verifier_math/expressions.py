"""The recursive-descent parser: tokens to an expression tree, within strict bounds.

`parse_expression` reads all tokens or raises `Unreadable`; nesting over the bound raises
`OverBound`. It computes nothing but literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from prime_verifier_math import tree
from prime_verifier_math.bounds import MAX_DEPTH, OverBound, Unreadable
from prime_verifier_math.commands import DEGREE, CommandReader
from prime_verifier_math.cursor import CLOSERS, END
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Call, Node, Num, Pow
from prime_verifier_math.vocabulary import FUNCTIONS, GREEK, RESTATED

MAX_POSTFIX = 6  # factorials, exponents and signs behind one factor
_STARTERS = (
    FUNCTIONS
    | GREEK
    | RESTATED
    | frozenset(
        [
            "pi",
            "infty",
            "frac",
            "binom",
            "sqrt",
            "cbrt",
            "abs",
            "floor",
            "ceil",
            "lfloor",
            "lceil",
            "overline",
            "vec",
            "hat",
            "tilde",
            "factorial",
            "uniroot",
            "unicuberoot",
            "unifourthroot",
            "widehat",
            "overrightarrow",
            "sgn",
        ]
    )
)


def parse_expression(made: Sequence[Token]) -> Node:
    """The tree of all tokens; raises `Unreadable` or `OverBound`."""
    reader = Reader(made)
    node = reader.sum()
    if reader.peek() is not END:
        raise Unreadable(f"unexpected {reader.peek().text[:20]!r}")
    return node


class Reader(CommandReader):
    """Sums, products and powers; every method reads one level of the grammar."""

    def sum(self) -> Node:
        """Terms joined by + - and the two plus-minus signs."""
        terms = [self._signed_product()]
        while True:
            token = self.peek()
            if token.is_op("+-"):
                self.take()
                term = self._signed_product()
                terms.append(tree.negate(term) if token.text == "-" else term)
            elif token.is_cmd("pm", "mp"):
                self.take()
                terms.append(Call(token.text, (self._signed_product(),)))
            else:
                return tree.add(*terms)

    def _signed_product(self) -> Node:
        """A product behind its signs."""
        negative = False
        while self.peek().is_op("+-"):
            negative ^= self.take().text == "-"
        if self.peek().is_cmd("pm", "mp"):
            name = self.take().text
            node: Node = Call(name, (self._product(),))
        else:
            node = self._product()
        return tree.negate(node) if negative else node

    def _product(self) -> Node:
        """Factors side by side or joined by a sign of multiplication or division."""
        factors = [self._power()]
        while True:
            token = self.peek()
            if token.is_op("*") or token.is_cmd("cdot", "times"):
                self.take()
                factors.append(self._signed_power())
            elif token.is_op("/") or token.is_cmd("div"):
                self.take()
                below = self._signed_power()
                if isinstance(factors[-1], Num):
                    factors[-1] = tree.divide(factors[-1], below)
                else:
                    factors.append(Pow(below, tree.MINUS_ONE))
            elif self._starts_factor(token):
                factors.append(self._power())
            else:
                return tree.multiply(*factors)

    def _signed_power(self) -> Node:
        if self.peek().is_op("+-"):
            sign = self.take().text
            node = self._signed_power_inner()
            return tree.negate(node) if sign == "-" else node
        return self._power()

    def _signed_power_inner(self) -> Node:
        if self.peek().is_op("+-"):
            raise Unreadable("two signs")
        return self._power()

    def _starts_factor(self, token: Token) -> bool:
        if token.kind in ("num", "let", "word", "text"):
            return True
        if token.kind == "op":
            if token.text == "|":
                return self._bars == 0
            return token.text in "({["
        if token.kind != "cmd":
            return False
        return token.text in _STARTERS

    def _power(self) -> Node:
        """A primary with its factorials, degrees and exponent."""
        node = self._primary()
        for _ in range(MAX_POSTFIX):
            token = self.peek()
            if token.is_op("!"):
                self.take()
                node = Call("factorial", (node,))
            elif token.is_cmd("degree"):
                self.take()
                node = tree.multiply(node, DEGREE)
            elif token.is_cmd("%") or token.is_op("%"):
                self.take()
                node = tree.multiply(node, Num(Fraction(1, 100)))
            elif token.is_op("^"):
                self.take()
                node = self._raise(node)
            else:
                return node
        raise OverBound("too many signs behind a factor")

    def _raise(self, base: Node) -> Node:
        """The exponent behind ^: a circle is a degree, primes are refused."""
        if self._is_circle():
            return tree.multiply(base, DEGREE)
        exponent = self._exponent()
        return Pow(base, exponent)

    def _is_circle(self) -> bool:
        one, two, three = self.peek(), self.peek(1), self.peek(2)
        if one.is_cmd("circ", "degree"):
            self._at += 1
            return True
        if one.is_op("{") and two.is_cmd("circ", "degree") and three.is_op("}"):
            self._at += 3
            return True
        return False

    def _exponent(self) -> Node:
        """What stands behind ^: a group, or one token with its own exponent and sign."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OverBound("nested too deeply")
        if self.peek().is_op("+-"):
            sign = self.take().text
            node = self._exponent()
            node = tree.negate(node) if sign == "-" else node
        else:
            node = self._primary()
            if self.peek().is_op("^"):
                self.take()
                node = self._raise(node)
            elif self.peek().is_op("!") and not self.peek().space:
                raise Unreadable("a factorial in a bare exponent can be read two ways")
        self._depth -= 1
        return node

    def _primary(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OverBound("nested too deeply")
        node = self._unguarded_primary()
        self._depth -= 1
        return node

    def _unguarded_primary(self) -> Node:
        token = self.take()
        if token.kind == "num":
            return self._number(token)
        if token.kind == "let":
            return self._letter(token.text)
        if token.kind == "word":
            return self._word(token.text)
        if token.kind == "text":
            return self._text_symbol(token.text)
        if token.kind == "op":
            return self._bracketed(token)
        if token.kind == "cmd":
            return self._command(token)
        raise Unreadable(f"unexpected {token.text[:20]!r}")

    def _bracketed(self, token: Token) -> Node:
        if token.text == "|":
            self._bars += 1
            node = self.sum()
            self._bars -= 1
            self.expect("|")
            return Call("abs", (node,))
        closer = CLOSERS.get(token.text)
        if closer is None:
            raise Unreadable(f"unexpected {token.text!r}")
        bars, self._bars = self._bars, 0
        node = self.sum()
        self._bars = bars
        self.expect(closer)
        return node
