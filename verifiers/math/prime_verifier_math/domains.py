r"""Where a letter of an answer says that it stands for any whole number: `k\pi, k\in\mathbb{Z}`.

Called by `reading.py` on tidied text; such a clause adds nothing and goes, every other one stays.
"""

from __future__ import annotations

import re

MAX_CLAUSE = 120  # characters at the end of an answer that may be the clause
_INTEGERS = r"\\(?:mathbb\s*(?:\{\s*Z\s*\}|Z(?![A-Za-z]))|integers(?![A-Za-z])|Z(?![A-Za-z]))"
_CLAUSE = re.compile(
    r"(?:[\s,;(]|\\[,;: ])*+"
    r"(?:\b(?:where|for|with)\b\s*+)?(?:\b(?:any|all|some|every)\s++)?(?:"
    rf"(?P<in>[a-z])\s*+\\in(?![A-Za-z])\s*+{_INTEGERS}|"
    r"(?P<is>[a-z])\s++(?:is\s++)?an\s++(?:arbitrary\s++)?integer|"
    r"integers?\s++(?P<named>[a-z]))\s*+\)?\s*+\Z"
)
_TEXT = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*+\{([^{}]*+)\}")
_COMPARED = re.compile(r"[<>]|\\(?:le|ge|lt|gt|leq|geq|ne|neq|in|mid)(?![A-Za-z])|[{|:]\s*\Z|\\\{")


def without_domain(text: str) -> str:
    """The text without a clause that its letter is any integer; the text itself for none."""
    found = _domain(text)
    return found[0] if found else text


def in_letter_of(gold: str, answer: str) -> str | None:
    """The answer without its clause, in the gold's letter; None where the two say no two letters.

    `n\\pi, n\\in\\mathbb{Z}` is `k\\pi` where the gold says so of k,
    unless k is another thing in it.
    """
    wanted, found = _domain(gold), _domain(answer)
    if wanted is None or found is None or wanted[1] == found[1]:
        return None
    body, letter = found
    if _beside(wanted[1], wanted[0]) or _beside(letter, body) or _beside(wanted[1], body):
        return None  # ak may be a product or a name
    return None if re.search(_alone(wanted[1]), body) else re.sub(_alone(letter), wanted[1], body)


def _domain(text: str) -> tuple[str, str] | None:
    """(the text without the clause, its letter); None for no clause that adds nothing."""
    if "nteger" not in text and "\\in" not in text:
        return None
    start = max(0, len(text) - MAX_CLAUSE)
    head, tail = text[:start], _TEXT.sub(r" \1 ", text[start:])
    clause = _CLAUSE.search(tail)
    if clause is None:
        return None
    body = head + tail[: clause.start()]
    letter = clause["in"] or clause["is"] or clause["named"]
    if _COMPARED.search(body) or not re.search(_alone(letter), body):
        return None
    return body, letter


def _alone(letter: str) -> str:
    """The letter where it's no part of a word or a command."""
    return rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])"


def _beside(letter: str, body: str) -> bool:
    """Whether the letter stands beside another letter somewhere."""
    plain = re.sub(r"\\[A-Za-z]+", " ", body)
    return re.search(rf"[A-Za-z]{letter}|{letter}[A-Za-z]", plain) is not None
