"""Text that somebody else wrote, made into tokens none of which is a control token.

Used by `chat`. A tokenizer reads the text of an end-of-turn marker as that marker; whoever could
put it into a prompt or a reply (a tool that shows a web page) could forge the model's turns.
Invariant: control tokens of a rendered conversation are those that the template wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prime_core.api import Message

_PLACE = "prime-core-7f3a9c-inert-"


@dataclass(frozen=True, slots=True)
class Hidden:
    """What placeholders stand for.

    Attributes:
        prefix: of every placeholder; no message contains it.
        texts: behind prefix, index and a dash.
    """

    prefix: str = _PLACE
    texts: tuple[str, ...] = ()


class Inert:
    """Encodes the texts of a tokenizer's control tokens as plain text where they are content.

    Control tokens are those that the tokenizer calls special, and among the other ones that were
    added to its vocabulary those that its chat template writes or that end a turn.

    Args:
        rendered: conversations of the chat template, in which nobody says a control token.
        ends: tokens that end a turn.
    """

    def __init__(
        self, tokenizer: Any, rendered: Sequence[str] = (), ends: Collection[int] = ()
    ) -> None:
        self._tokenizer = tokenizer
        used = {*ends, *(token for text in rendered for token in self._plain(text))}
        texts = {*tokenizer.all_special_tokens}
        for token, each in getattr(tokenizer, "added_tokens_decoder", {}).items():
            # white space that was added is no marker
            if each.special or (token in used and str(each).strip()):
                texts.add(str(each))
        self._ids = {*tokenizer.all_special_ids}
        self._ids |= {tokenizer.convert_tokens_to_ids(text) for text in texts}
        # of two that begin alike, the longer one is what a tokenizer reads
        longest_first = sorted((text for text in texts if text), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def hide(self, messages: Sequence[Message]) -> tuple[list[Message], Hidden]:
        """Messages with a placeholder for each control text, and these texts.

        All that is rendered together must be hidden together.
        """
        prefix, said = _PLACE, "".join(each.content for each in messages)
        while prefix in said:
            prefix += "x-"
        texts: list[str] = []

        def place(found: re.Match[str]) -> str:
            texts.append(found[0])
            return f"{prefix}{len(texts) - 1}-"

        shown = [replace(each, content=self._control.sub(place, each.content)) for each in messages]
        return shown, Hidden(prefix, tuple(texts))

    def encode(self, text: str, hidden: Hidden) -> tuple[int, ...]:
        """Tokens of a rendered conversation; what was hidden becomes plain text in its place."""
        indices = {str(index): each for index, each in enumerate(hidden.texts)}
        tokens: list[int] = []
        done = 0
        for found in re.finditer(re.escape(hidden.prefix) + "([0-9]+)-", text):
            if found[1] in indices:  # else the template makes up a placeholder of its own
                tokens += self._plain(text[done : found.start()])
                tokens += self._split(indices[found[1]])
                done = found.end()
        return (*tokens, *self._plain(text[done:]))

    def _plain(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False)) if text else ()

    def _split(self, text: str) -> tuple[int, ...]:
        found = self._whole(text)
        if self._ids.isdisjoint(found):
            return found
        # Its vocabulary has the text as a word, too, or it knows no split_special_tokens. A single
        # character that somebody declared special stays the token that it is.
        return tuple(token for character in text for token in self._whole(character))

    def _whole(self, text: str) -> tuple[int, ...]:
        try:
            return tuple(
                self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
            )
        except (TypeError, ValueError):  # it takes no such option
            return self._plain(text)
