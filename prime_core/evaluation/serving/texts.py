"""Text of a completion while its tokens come: decoded piece by piece, cut at stop texts.

Used by `choices`, one of each a choice. Invariant: the pieces put together are the text that the
whole answer has, and no piece holds anything of a stop text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Tokens before a piece that are decoded with it: some tokenizers drop the space of a first word.
_CONTEXT = 5
_PARTIAL = "\ufffd"  # the decoder's mark for half a character
_MOST_HELD = 16  # tokens; a character has at most 4 bytes, more of them are no character


class Decoder:
    """Tokens in, text out; a character whose bytes aren't all there yet is held back.

    Args:
        tokenizer: of the model.
        before: the tokens that came before, whose text isn't part of it.
        special: whether special tokens are written out.
    """

    def __init__(self, tokenizer: Any, before: Sequence[int], *, special: bool = False) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._tokens = list(before[-_CONTEXT:])
        self._from = 0
        self._told = len(self._tokens)

    def add(self, token: int) -> str:
        """The text that this token completes; empty where it's half a character."""
        self._tokens.append(token)
        before, now = self._decoded()
        held = len(self._tokens) - self._told
        if (now.endswith(_PARTIAL) or len(now) <= len(before)) and held < _MOST_HELD:
            return ""
        self._from, self._told = self._told, len(self._tokens)
        return now[len(before) :]

    def rest(self) -> str:
        """What was held back, at the end."""
        before, now = self._decoded()
        self._told = len(self._tokens)
        return now[len(before) :]

    def _decoded(self) -> tuple[str, str]:
        return (
            self._decode(self._tokens[self._from : self._told]),
            self._decode(self._tokens[self._from :]),
        )

    def _decode(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(
            tokens, skip_special_tokens=not self._special, clean_up_tokenization_spaces=False
        )
        return text


class StopFinder:
    """Passes text on up to the first stop text, and holds back what may become one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found = False

    def add(self, text: str) -> str:
        """The text that may be shown now; nothing any more once a stop was found."""
        if self.found:
            return ""
        self._held += text
        places = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if places:
            self.found = True
            shown, self._held = self._held[: min(places)], ""
            return shown
        keep = self._may_begin_a_stop()
        shown = self._held[: len(self._held) - keep]
        self._held = self._held[len(shown) :]
        return shown

    def rest(self) -> str:
        """What was held back, where no stop came of it."""
        shown, self._held = self._held, ""
        return shown

    def _may_begin_a_stop(self) -> int:
        """Length of the longest end of the held text that some stop begins with."""
        longest = max(map(len, self._stops), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            end = self._held[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0
