"""Texts compared as data sets are: normalised, by their words, by runs of words.

Rules D04 to D06 use it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

RUN = 13  # words in a row that two texts share by copying, not by chance
WORD = re.compile(r"\w+")


def normal(text: str) -> str:
    """Lower-case words with one space between."""
    return " ".join(WORD.findall(text.lower()))


def digest(text: str) -> str:
    """Of the text, its white space collapsed; case, signs and digits count."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def runs(text: str) -> Iterator[int]:
    """Every run of `RUN` words, as a number; a shorter text gives none."""
    words = WORD.findall(text.lower())
    for at in range(len(words) - RUN + 1):
        run = " ".join(words[at : at + RUN])
        yield int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest(), "big")


class Corpus:
    """Texts that others must not hold: whole, or in a long run of words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole: set[str] = set()
        self._runs: set[int] = set()
        for text in texts:
            self._whole.add(normal(text))
            self._runs.update(runs(text))

    def holds(self, text: str) -> bool:
        """The text is one of them, or shares a long run of words with one."""
        whole = normal(text)
        return bool(whole) and (whole in self._whole or any(r in self._runs for r in runs(text)))
