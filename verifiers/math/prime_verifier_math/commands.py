"""Symbols, words, commands and functions of the expression grammar.

The middle layer of the reader: it knows names, and asks the layer above for sums and powers.
"""

from __future__ import annotations

from abc import abstractmethod

from prime_verifier_math import tree
from prime_verifier_math.bounds import MAX_DEPTH, OverBound, Unreadable
from prime_verifier_math.cursor import END, Cursor, literal
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Call, Const, Node, Pow, Sym
from prime_verifier_math.vocabulary import FUNCTIONS, GREEK, RESTATED, is_text

DEGREE = tree.divide(tree.PI, tree.integer(180))
_NAMED_FUNCTIONS = "fghFGH"


class CommandReader(Cursor):
    """Reads what begins with a letter, a word or a command."""

    @abstractmethod
    def sum(self) -> Node:
        """Terms up to what can't be one."""

    @abstractmethod
    def _power(self) -> Node:
        """A factor with its exponent."""

    @abstractmethod
    def _primary(self) -> Node:
        """A factor without its exponent."""

    @abstractmethod
    def _exponent(self) -> Node:
        """What stands behind ^."""

    @abstractmethod
    def _is_circle(self) -> bool:
        """Consume a degree circle."""

    @abstractmethod
    def _starts_factor(self, token: Token) -> bool:
        """Whether a factor begins with it."""

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
                node = tree.multiply(node, DEGREE)
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
