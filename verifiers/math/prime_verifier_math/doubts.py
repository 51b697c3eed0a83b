"""What the prose behind an answer does to it: offers another value, or puts one in its place.

`extraction.py` calls `doubts` with the text behind a box or a statement; whether an offered value
is another one is for `hedges.live` to say. No more than `REACH` characters are looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from prime_verifier_math.doubt_patterns import (
    ALTERNATIVE,
    CUES,
    NO_NAMES,
    OFFERS,
    OPEN,
    REJECTED,
    REPLACES,
    VALUES,
)
from prime_verifier_math.hedges import Candidate
from prime_verifier_math.units import known_word

REACH = 600  # characters behind an answer that are read for doubts
MAX_CORRECTIONS = 4


@dataclass(frozen=True, slots=True)
class Doubts:
    """`offered` beside the answer; `replaced` by this value, "" for none."""

    offered: tuple[Candidate, ...] = ()
    replaced: str = ""


def doubts(behind: str, *, named: bool = False) -> Doubts:
    """What the text behind an answer offers in its place, and the last value that replaces it.

    `named` says that the answer is words, so that words may stand in its place.
    """
    near = behind[:REACH]
    if not near.strip(" .$)*\\]}\n") or not CUES.search(near):
        return Doubts()
    if not named and not VALUES.search(near):
        return Doubts()
    replaced = ""
    start = 0
    for _ in range(MAX_CORRECTIONS):
        found = _correction(near, start, named)
        if found is None:
            break
        replaced, start = found
    return Doubts(tuple(_offers(near[start:], named)), replaced)


def _correction(near: str, start: int, named: bool) -> tuple[str, int] | None:
    """The first value that takes the answer's place, and where it ends."""
    found = [match for pattern in REPLACES for match in pattern.finditer(near, start)]
    for match in sorted(found, key=lambda one: one.start()):
        value = _said(match, named)
        if value:
            return value, match.end()
    return None


def _offers(near: str, named: bool) -> list[Candidate]:
    """Values that the words call possible, unless their sentence rules them out."""
    found = []
    for pattern in (*OFFERS, ALTERNATIVE):
        for match in pattern.finditer(near):
            value = _said(match, named)
            rest = near[match.end() :]
            sentence = match[0] + rest[: _sentence(rest)]
            if value and not (REJECTED.search(sentence) and not OPEN.search(sentence)):
                found.append(Candidate(value, condition=pattern is not ALTERNATIVE))
    return found


def _sentence(text: str) -> int:
    end = re.search(r"[.!?](?=\s|\Z)|\n", text)
    return end.start() if end else len(text)


def _said(match: re.Match[str], named: bool) -> str:
    """The value that was matched, as an answer is written; "" for words that name none."""
    parts = match.groupdict()
    name = parts.get("name")
    if name is not None:
        return name if named and not set(name.lower().split()) & NO_NAMES else ""
    value = match["value"].strip("* ")
    for opening, closing in (("$", "$"), ("\\(", "\\)"), ("\\boxed{", "}")):
        if value.startswith(opening) and value.endswith(closing) and len(value) > 2:
            value = value[len(opening) : -len(closing)]
    if value.lower() == "one":
        return ""  # one can, one says
    noun = (parts.get("noun") or "").strip()
    if not noun or not known_word(noun):
        return "" if noun and match.re is ALTERNATIVE else value
    return f"{value}\\text{{ {noun}}}"
