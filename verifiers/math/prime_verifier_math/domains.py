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
    if "nteger" not in text and "\\in" not in text:
        return text
    start = max(0, len(text) - MAX_CLAUSE)
    head, tail = text[:start], _TEXT.sub(r" \1 ", text[start:])
    clause = _CLAUSE.search(tail)
    if clause is None:
        return text
    body = head + tail[: clause.start()]
    letter = clause["in"] or clause["is"] or clause["named"]
    stands = re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", body)
    return text if stands is None or _COMPARED.search(body) else body
