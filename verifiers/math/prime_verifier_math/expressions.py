"""The recursive-descent parser: tokens to an expression tree, within strict bounds.

`parse_expression` reads all tokens or raises `Unreadable`; nesting over the bound raises
`OverBound`. It computes nothing but literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from prime_verifier_math import tree
from prime_verifier_math.bounds import MAX_DEPTH, MAX_DIGITS, MAX_EXPONENT, OverBound, Unreadable
from prime_verifier_math.lexer import Token
from prime_verifier_math.literals import repeated_block, repeating
from prime_verifier_math.tree import Call, Const, Node, Num, Pow, Sym
from prime_verifier_math.vocabulary import FUNCTIONS, GREEK, RESTATED, is_text

END = Token("end", "")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
MAX_POSTFIX = 6  # factorials, exponents and signs behind one factor
_NAMED_FUNCTIONS = "fghFGH"
_DEGREE = tree.divide(tree.PI, tree.integer(180))


def parse_expression(made: Sequence[Token]) -> Node:
    """The tree of all tokens; raises `Unreadable` or `OverBound`."""
    reader = Reader(made)
    node = reader.sum()
    if reader.peek() is not END:
        raise Unreadable(f"unexpected {reader.peek().text[:20]!r}")
    return node


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


class Reader:
    """A position in the tokens; every method reads one level of the grammar."""

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
                factors.append(Pow(self._signed_power(), tree.MINUS_ONE))
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
                node = tree.multiply(node, _DEGREE)
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
            return tree.multiply(base, _DEGREE)
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
        closer = _CLOSERS.get(token.text) if token.kind == "op" else None
        inner = self.peek(ahead + 1)
        if closer and inner.kind == "num" and inner.text.isdigit():
            if self.peek(ahead + 2).is_op(closer) and len(inner.text) <= MAX_DIGITS:
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
        if token.kind == "num" and token.space and slash.is_op("/") and last.kind == "num":
            if token.text.isdigit() and last.text.isdigit() and len(last.text) < 10:
                if len(token.text) < 10 and int(token.text) < int(last.text):
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

    def _argument(self, *, one_digit: bool = True) -> Node:
        """An argument of a command: a group or one token."""
        token = self.peek()
        if token.is_op("{"):
            self.take()
            node = self.sum()
            self.expect("}")
            return node
        if token.kind == "num":
            return literal(self._split_digit() if one_digit else self.take().text)
        if token.kind == "cmd" or token.kind == "let" or token.is_op("("):
            return self._primary()
        raise Unreadable("an argument is missing")

    def _letter(self, name: str) -> Node:
        if name == "i":
            return Const("i")
        if name == "e":
            return Const("e")
        if name in _NAMED_FUNCTIONS and self.peek().is_op("(") and not self.peek().space:
            self.take()
            args = [self.sum()]
            while self.peek().is_op(","):
                self.take()
                args.append(self.sum())
            self.expect(")")
            return Call(f"fn:{name}", tuple(args))
        return Sym(name + self._subscript())

    def _subscript(self) -> str:
        """The subscript and primes of a symbol, as part of its name."""
        name = ""
        while self.peek().is_op("'"):
            self.take()
            name += "'"
        if not self.peek().is_op("_"):
            return name
        self.take()
        token = self.take()
        if token.is_op("{"):
            inner = []
            while not self.peek().is_op("}"):
                token = self.take()
                if token is END or token.is_op("{"):
                    raise Unreadable("an unfinished subscript")
                inner.append(token.text)
            self.take()
            return name + "_" + "".join(inner)[:40]
        if token.kind not in ("num", "let", "cmd", "text", "word"):
            raise Unreadable("an empty subscript")
        return name + "_" + token.text[:40]

    def _word(self, word: str) -> Node:
        """A run of letters: a function glued to its argument, or a product of letters."""
        for size in (6, 5, 4, 3, 2):
            if len(word) > size and word[:size] in FUNCTIONS:
                self._push_letters(word[size:])
                return self._function(word[:size])
        if word[:2] == "pi":
            self._push_letters(word[2:])
            return tree.PI
        if len(word) > 8 or (is_text(word) and not (len(word) == 2 and word.isupper())):
            raise Unreadable("a word, not an expression")
        self._push_letters(word[1:])
        return self._letter(word[0]) if word[0] not in _NAMED_FUNCTIONS else Sym(word[0])

    def _push_letters(self, letters: str) -> None:
        self._at -= 1
        self._tokens[self._at : self._at + 1] = [Token("let", letter) for letter in letters]

    def _text_symbol(self, text: str) -> Node:
        """Upright single letters and Greek names are symbols; other text isn't mathematics."""
        name = text.strip()
        if name in ("i", "e"):
            return Const(name)
        if len(name) == 1 and name.isalpha():
            return Sym(name + self._subscript())
        raise Unreadable("text in an expression")

    def _bracketed(self, token: Token) -> Node:
        if token.text == "|":
            self._bars += 1
            node = self.sum()
            self._bars -= 1
            self.expect("|")
            return Call("abs", (node,))
        closer = _CLOSERS.get(token.text)
        if closer is None:
            raise Unreadable(f"unexpected {token.text!r}")
        bars, self._bars = self._bars, 0
        node = self.sum()
        self._bars = bars
        self.expect(closer)
        return node

    def _command(self, token: Token) -> Node:
        name = token.text
        if name in RESTATED:
            raise Unreadable(f"{name} is a question, not an answer")
        if name in FUNCTIONS:
            return self._function(name)
        if name == "pi":
            return tree.PI
        if name == "infty":
            return tree.INFINITY
        if name in GREEK:
            return Sym("\\" + name + self._subscript())
        if name == "frac":
            return self._fraction()
        if name == "binom":
            return Call("binom", (self._argument(), self._argument()))
        if name == "sqrt":
            return self._root()
        if name in ("uniroot", "unicuberoot", "unifourthroot"):
            index = {"uniroot": 2, "unicuberoot": 3, "unifourthroot": 4}[name]
            return Call("root", (self._argument(one_digit=False), tree.integer(index)))
        if name == "cbrt":
            return Call("root", (self._argument(), tree.integer(3)))
        if name in ("abs", "floor", "ceil", "factorial", "sgn"):
            return Call(name, (self._argument(one_digit=False),))
        if name in ("lfloor", "lceil"):
            node = self.sum()
            self.expect("r" + name[1:])
            return Call(name[1:], (node,))
        if name == "|":
            node = self.sum()
            self.expect("|")
            return Call("abs", (node,))
        if name in ("overline", "vec", "hat", "widehat", "tilde", "overrightarrow"):
            return self._accented(name)
        raise Unreadable(f"\\{name} isn't known")

    def _fraction(self) -> Node:
        top, bottom = self._argument(), self._argument()
        below = bottom.factors if isinstance(bottom, tree.Mul) else ()
        above = top.factors if isinstance(top, tree.Mul) else (top,)
        if len(below) > 1 and below[0] == Sym("d") and above[0] == Sym("d"):
            raise Unreadable("a derivative is a question, not an answer")
        return tree.divide(top, bottom)

    def _accented(self, name: str) -> Node:
        """A bar or an arrow over letters is a name; over a number, a conjugate isn't an answer."""
        node = self._argument()
        letters = node.factors if isinstance(node, tree.Mul) else (node,)
        if not all(isinstance(letter, Sym | Const) for letter in letters):
            raise Unreadable(f"\\{name} over an expression")
        return Sym(f"{name}:" + "".join(getattr(letter, "name", "") for letter in letters))

    def _root(self) -> Node:
        index: Node = tree.integer(2)
        if self.peek().is_op("["):
            self.take()
            index = self.sum()
            self.expect("]")
        if self.peek().is_op("^"):
            raise Unreadable("an exponent between a root and its radicand")
        return Call("root", (self._argument(one_digit=False), index))

    def _function(self, name: str) -> Node:
        """A function with its base or exponent and its argument, with or without parentheses."""
        base: Node | None = None
        exponent: Node | None = None
        while self.peek().is_op("_^"):
            if self.take().text == "_":
                base = self._argument(one_digit=False)
            elif self._is_circle():
                raise Unreadable("a degree without a number")
            else:
                exponent = self._exponent()
        inverse = exponent == tree.MINUS_ONE and name in ("sin", "cos", "tan", "cot", "sec", "csc")
        if inverse:
            name, exponent = "arc" + name, None
        node: Node
        if name == "exp":
            node = Pow(Const("e"), self._function_argument())
        elif name in ("log", "lg", "ln") and base is not None:
            node = tree.divide(Call("ln", (self._function_argument(),)), Call("ln", (base,)))
        elif base is not None:
            raise Unreadable(f"a subscript of {name}")
        else:
            node = Call("log" if name == "lg" else name, (self._function_argument(),))
        return node if exponent is None else Pow(node, exponent)

    def _function_argument(self) -> Node:
        """Parenthesised, or the factors up to the next sign or function: sin 2x cos x is two."""
        token = self.peek()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OverBound("nested too deeply")
        if token.is_op("({["):
            node = self._primary()
            while self.peek().is_cmd("degree"):
                self.take()
                node = tree.multiply(node, _DEGREE)
        else:
            factors = [self._power()]
            while (
                self._starts_factor(self.peek())
                and self.peek().text not in FUNCTIONS
                and not self.peek().is_op("([")
            ) or (self.peek().is_op("/") and self.peek(1).kind == "num"):
                if self.peek().is_op("/"):
                    self.take()
                    factors.append(Pow(self._power(), tree.MINUS_ONE))
                else:
                    factors.append(self._power())
            node = tree.multiply(*factors)
        self._depth -= 1
        return node


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
