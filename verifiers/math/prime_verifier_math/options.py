"""A choice said to be right in a sentence about it: "Option C is correct", "(C) is the answer".

Called by `statements.py` where no other statement stands; two such choices are two answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_SAID = 20  # sentences looked at, from the last
_CORRECT = (
    r"(?:(?:the\s+)?(?:only\s+)?(?:correct|right|best)\s+(?:answer|option|choice|one|alternative)|"
    r"the\s+(?:final\s+)?answer|(?:also\s+)?(?:correct|right))"
)
_SAID = re.compile(
    r"(?:\b(?:option|choice|answer|alternative)\s+(?:\*\*|__)?\(?(?P<named>(?-i:[A-Z]))|"
    r"(?<![\w)}\]])\((?P<bracketed>(?-i:[A-Z]))(?=\))|"
    r"(?<![\w(\\$-])(?P<bare>(?-i:[A-J]))(?=(?:\*\*|__)?\s+is\s+(?:the|my|our)\s))"
    r"\)?[.:]?(?:\*\*|__)?\s+is\s+(?:(?:therefore|thus|hence|indeed|clearly)\s+)?"
    rf"{_CORRECT}\b(?!\s*,?\s*(?:that|if|only|when|unless|to|for|of|but|or)\b|\s*\?|-)",
    re.IGNORECASE,
)
# another choice stands right before: A and (B) is correct
_JOINED = re.compile(
    r"(?:\b(?:or|and|nor|neither|either|not)\s+(?:the\s+)?|(?:^|[\s(*])(?-i:[A-Z])\)?\s*,\s*)"
    r"(?:\*\*|__)?\Z",
    re.IGNORECASE,
)


def said_right(
    text: str, supposed: Callable[[int], bool]
) -> tuple[tuple[str, ...], int, int] | None:
    """The different choices said to be right, in their order, and the last one's place.

    `supposed` says whether the sentence that begins there states nothing.
    """
    found = [
        match
        for match in list(_SAID.finditer(text))[-MAX_SAID:]
        if not _JOINED.search(text[max(0, match.start() - 40) : match.start()])
        and not supposed(match.start())
    ]
    if not found:
        return None
    letters = dict.fromkeys(
        match["named"] or match["bracketed"] or match["bare"] for match in found
    )
    return tuple(letters), found[-1].start(), found[-1].end()
