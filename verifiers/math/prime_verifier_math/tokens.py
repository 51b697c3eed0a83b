"""One token of an answer: what the lexer makes and every parser reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `kind` is num, cmd, let, word, text, join or op; `space` says what precedes."""

    kind: str
    text: str
    space: bool = False

    def is_op(self, chars: str) -> bool:
        """Whether it is one of these single characters."""
        return self.kind == "op" and self.text in chars

    def is_cmd(self, *names: str) -> bool:
        """Whether it is one of these commands."""
        return self.kind == "cmd" and self.text in names
