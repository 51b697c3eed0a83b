"""Problems that are asked twice, and problems that an evaluation set asks too.

Called when a data set is loaded. Two problems are the same where their words are; they overlap
where they share `ngram` words in a row (13, as in the contamination study of the GPT-3 paper,
arXiv 2005.14165, appendix C). Spelling of spaces, punctuation, dollars and capitals doesn't count.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prime_core.api import Task

# Words, LaTeX commands, single digits of numbers kept together, and the signs that carry meaning.
WORD = re.compile(r"\\?[a-z]+|[0-9]+|[-+*/^=<>|!%]")
SPACING = re.compile(r"\\[,;:! ]|\\(?:left|right|quad|qquad|displaystyle|dfrac|tfrac)(?![a-z])")
FRACTIONS = {r"\dfrac": r"\frac", r"\tfrac": r"\frac"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem that stood before.

    Attributes:
        id: of the task.
        other: of what it repeats.
        how: same, or overlap.
        same_gold: whether both have the same gold answer.
    """

    id: str
    other: str
    how: str
    same_gold: bool

    def __str__(self) -> str:
        gold = "" if self.same_gold else ", with another gold answer"
        said = "asks the same as" if self.how == "same" else "shares words with"
        return f"{self.id} {said} {self.other}{gold}"


def words(text: str) -> list[str]:
    """The words of a problem, normalised."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-")
    for long, short in FRACTIONS.items():
        plain = plain.replace(long, short)
    return WORD.findall(SPACING.sub(" ", plain))


def problem_text(task: Task) -> str:
    """What the user asks, without the system message."""
    return "\n".join(message.content for message in task.prompt if message.role == "user")


def _hash(some: Sequence[str]) -> bytes:
    return hashlib.blake2b(" ".join(some).encode("utf-8", "replace"), digest_size=8).digest()


def duplicates(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Every task that asks what an earlier one asked."""
    first: dict[bytes, Task] = {}
    for task in tasks:
        earlier = first.setdefault(_hash(words(problem_text(task))), task)
        if earlier is not task:
            yield Finding(task.id, earlier.id, "same", earlier.gold == task.gold)


class EvaluationIndex:
    """The problems of the evaluation sets, by hash of the whole and of all n-grams."""

    def __init__(self, tasks: Iterable[tuple[str, Task]], ngram: int) -> None:
        self._ngram = ngram
        self._whole: dict[bytes, tuple[str, Task]] = {}
        self._parts: dict[bytes, tuple[str, Task]] = {}
        for name, task in tasks:
            found = words(problem_text(task))
            self._whole.setdefault(_hash(found), (name, task))
            for part in self._ngrams(found):
                self._parts.setdefault(part, (name, task))

    def _ngrams(self, found: Sequence[str]) -> Iterator[bytes]:
        for start in range(len(found) - self._ngram + 1):
            yield _hash(found[start : start + self._ngram])

    def overlaps(self, tasks: Iterable[Task]) -> Iterator[Finding]:
        """Every task that is, or shares an n-gram with, a problem of an evaluation set."""
        for task in tasks:
            found = words(problem_text(task))
            hit = self._whole.get(_hash(found))
            how = "same" if hit is not None else "overlap"
            if hit is None:
                hit = next((self._parts[p] for p in self._ngrams(found) if p in self._parts), None)
            if hit is not None:
                name, other = hit
                yield Finding(task.id, f"{other.id} of {name}", how, other.gold == task.gold)
