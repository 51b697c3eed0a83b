"""Answers in words: booleans, choices, "no solution", and plain text in normal form.

Called by `reading.py` for what is no mathematics.
"""

from __future__ import annotations

import re

from prime_verifier_math import tree
from prime_verifier_math.answers import Absent, Answer, Boolean, Choice, Listing, Text, Value
from prime_verifier_math.numerals import numeral

_TRUE = frozenset(("true", "yes", "correct statement"))
_FALSE = frozenset(("false", "no"))
_ABSENT = frozenset((
    "undefined", "does not exist", "dne", "not defined", "no limit", "doesn't exist",
    "indeterminate", "is undefined",
))  # fmt: skip
EMPTY = frozenset((
    "no solution", "no solutions", "no real solution", "no real solutions", "empty set",
    "the empty set", "none", "no such number", "no such numbers", "no such value",
    "no such values", "no integer solutions", "no values", "no value",
))  # fmt: skip
EVERYTHING = frozenset((
    "all real numbers", "all reals", "all real", "every real number", "the set of real numbers",
    "set of all real numbers", "any real number", "all real values", "the set of all real numbers",
    "real numbers", "all real x",
))  # fmt: skip
INFINITE = frozenset(("infinity", "positive infinity", "plus infinity"))
_ARTICLES = frozenset(("the", "a", "an"))
_SPACE = re.compile(r"\s+")
_STRIP = " \t\n.,;:!?\"'`*_$~"
_CHOICE = re.compile(
    r"(?:(?:option|choice|answer|statement)\s*)?(?:\(\s*([A-Za-z])\s*\)|([A-Z])(?:[.):]|$))(.*)",
    re.DOTALL,
)
_OTHER = re.compile(r"\(\s*[A-Z]\s*\)|\b(?:or|and)\s+[A-Z]\b")
_CHOICE_WORD = re.compile(r"(?:option|choice)\s+\(?([A-Z])\)?\.?", re.IGNORECASE)


def plain(text: str) -> str:
    """The words of a text without markup at its ends, single spaces, capitals kept."""
    return _SPACE.sub(" ", text.replace("\\", " ").replace("{", "").replace("}", "")).strip(_STRIP)


def normal(text: str) -> str:
    """The words in normal form: folded case, no articles in front, no full stop."""
    words = plain(text).replace("-", " ").replace("'", "").split()
    while len(words) > 1 and words[0].lower() in _ARTICLES:
        words.pop(0)
    joined = " ".join(words)
    # names in capitals alone (ABC, DEF) keep their case: only words are folded
    return joined if joined.isupper() else joined.casefold()


def choice_of(text: str) -> Choice | None:
    """The option that a text names: C, (C), C., Option C, (C) 42."""
    stripped = text.strip().strip("$").strip()
    word = _CHOICE_WORD.fullmatch(stripped)
    if word:
        return Choice(word[1].upper())
    match = _CHOICE.fullmatch(stripped)
    if match is None:
        return None
    rest = match[3].strip()
    if re.match(r"(?:and|or|,|/|&)(?![a-z])", rest, re.IGNORECASE) or _OTHER.search(rest):
        return None
    return Choice((match[1] or match[2]).upper(), rest)


_DENYING = frozenset((
    "not", "never", "no", "wrong", "incorrect", "false", "invalid", "anything", "but", "except",
    "cannot", "without", "unlike", "or", "maybe", "perhaps", "possibly",
))  # fmt: skip


def denies(word: str) -> bool:
    """Whether a word of an announcement leaves open that the answer is meant."""
    return word.strip(" :,.") in _DENYING or word.endswith("n't")


_THERE = re.compile(
    r"(?:there (?:is|are|exists?)|(?:(?:the|this) )?(?:equation|system|problem|inequality) has|"
    r"it has|we have|has|have) (?=(?:no|an?) )"
)


_IT_IS = re.compile(r"(?:it is|its|on) (?=\S)")


def read_words(text: str) -> Answer:
    """The answer that words give; lists of words by commas, and, or."""
    words = _THERE.sub("", normal(text), count=1)
    words = _IT_IS.sub("", words, count=1)
    lower = words.casefold()
    if lower in _TRUE or lower in _FALSE:
        return Boolean(lower in _TRUE)
    if lower in _ABSENT:
        return Absent()
    if lower in EMPTY:
        return Listing((), "set")
    choice = choice_of(plain(text))
    if choice is not None:
        return choice
    number = numeral(words)
    if number is not None:
        return Value(tree.integer(number))
    parts = split_words(text)
    if len(parts) > 1:
        kind = "or" if re.search(r"\bor\b", lower) else "list"
        return Listing(tuple(read_words(part) for part in parts), kind)
    return Text(words, plain(text)[:200])


_SPLIT = re.compile(r"\s*(?:,\s*(?:and|or)\b|;|,|\band\b|\bor\b)\s*", re.IGNORECASE)


def split_words(text: str) -> list[str]:
    """Parts of an enumeration in words; a sentence stays whole."""
    text = plain(text)
    if len(text) > 400:
        return [text]
    parts = [part for part in _SPLIT.split(text) if part]
    if any(len(part.split()) > 3 for part in parts):
        return [text]
    return parts
