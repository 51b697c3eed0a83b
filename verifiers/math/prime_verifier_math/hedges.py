"""Second candidates in the prose right beside a box: `\\boxed{4} (or 5 if ...)`, `5 or \\boxed{4}`.

`extraction.py` finds them, the verifier asks `restates` whether one only writes the answer anew.
All patterns look at a bounded piece of text beside the box.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from prime_verifier_math import tree
from prime_verifier_math.answers import (
    Answer,
    Based,
    Equation,
    Listing,
    Opaque,
    Text,
    Value,
)
from prime_verifier_math.bounds import Steps
from prime_verifier_math.comparison import same_answer
from prime_verifier_math.reading import read_answer

NEAR = 160  # characters looked at on either side of a box
MAX_VALUE = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """An offered value and the noun behind the box; whether a condition or other words follow."""

    text: str
    noun: str = ""
    condition: bool = False
    alone: bool = True


_COULD_BE = r"(?:but\s++)?it\s++(?:could|might|may)\s++(?:also\s++|just as well\s++)?be"
_WORDS = rf"(?:or|and/or|maybe|perhaps|possibly|alternatively|{_COULD_BE})\b"
_BEHIND = re.compile(
    r"(?:[\s$*.\])]|\\[)\]]|\\text\{)*+"
    rf"(?:(?!{_WORDS})(?P<noun>[A-Za-z]{{1,20}}(?:/[A-Za-z]{{1,9}})?)\}}?)?"
    r"[\s,$]*+(?:[-–—(\[]++\s*+)?"
    rf"(?P<word>{_WORDS}),?\s*+(?:(?:if|when)\b[^,.()\n]{{1,60}},\s*+)?"
    r"(?:(?:else|maybe|perhaps|possibly|equivalently|even|just|also)\b,?\s*+)*+",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?P<value>\$[^$\n]{1,60}\$|[^\s$(),;]{1,40})[\s),?]*+\(?\s*+"
    r"(?:or|maybe|perhaps|possibly)\s++(?:(?:maybe|perhaps|possibly|else|even)\s++)?"
    r"[\s$\\(\[]*+(?:[A-Za-z]\s*+=\s*+)?\Z",
    re.IGNORECASE,
)
_BRACKETED = re.compile(
    rf"[(\[]{_WORDS}\s++(?P<value>[^()\[\]\n]{{1,60}})[)\]][\s:$\\(\[]*+\Z", re.IGNORECASE
)
_CONDITION = re.compile(
    r"\s+(?:if|when|for|unless|depending|counting|including|excluding|assuming|provided|with|"
    r"without)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(r"\s+or\b|,(?=\s)|[.](?=\s|$)|[?!;\n]", re.IGNORECASE)
_STARTS = re.compile(r"[-+.(\\$|]?\s*[\d\\(|]|[A-Za-z]\s*=|[A-Z]\Z")
_OTHER_WORDS = re.compile(r"\S+\s+(?:in|of|out|dozen|score|times|to|as|rounded|approx\w*)\b")

_GLUED = re.compile(r"(-?\d[\d.,]*)\s*([A-Za-z]{1,12})")  # 5m: a letter may be a unit in prose


def beside(text: str, start: int, end: int) -> tuple[Candidate, ...]:
    """The values that the words right before and behind a box offer in its place."""
    found: list[Candidate] = []
    behind = text[end : end + NEAR]
    match = _BEHIND.match(behind)
    if match is not None:
        one = _candidate(behind[match.end() :], match["noun"] or "")
        # a sentence of its own offers a value only where it says nothing else
        apart = "." in behind[: match.start("word")]
        if not apart or (one.alone and match["word"].lower() != "alternatively"):
            found.append(one)
    before = text[max(0, start - NEAR) : start].rpartition("\n")[2]
    for pattern in (_BEFORE, _BRACKETED):
        match = pattern.search(before)
        if match is not None and not match["value"].endswith((".", ":")):
            found.append(_candidate(match["value"], ""))
    return tuple(one for one in found if one.text)


def _candidate(rest: str, noun: str) -> Candidate:
    """The value at the start of `rest`; without a text where none stands there."""
    formula = re.match(r"\$([^$\n]{1,60})\$|\\\((.{1,60}?)\\\)", rest)
    if formula is not None:
        condition = _CONDITION.match(rest, formula.end()) is not None
        alone = condition or re.match(r"\s*(?:[.?!)\]]|\Z)", rest[formula.end() :]) is not None
        return Candidate(formula[1] or formula[2], noun, condition, alone)
    value = rest[: _closed(rest)]
    ends = _ENDS.search(value)
    value = value[: ends.start()] if ends else value
    limit = _CONDITION.search(value)
    value = (value[: limit.start()] if limit else value).strip(" *")
    if len(value) > MAX_VALUE or not _STARTS.match(value):
        return Candidate("")
    alone = limit is not None or re.search(r"\s[A-Za-z]", value) is None
    return Candidate(value, noun, limit is not None, alone)


def _closed(rest: str) -> int:
    """Where a bracket closes that was opened before `rest`, or its end."""
    depth = 0
    for index, char in enumerate(rest):
        depth += (char in "([") - (char in ")]")
        if depth < 0:
            return index
    return len(rest)


def live(candidate: Candidate, answer: Answer, text: str, same: Callable[[Answer], bool]) -> bool:
    """Whether the candidate is another answer; `same` compares one with the gold."""
    rival = read_answer(candidate.text)
    if isinstance(answer, Text) and isinstance(rival, Text):
        return rival.words != answer.words and rival.raw[:1].isupper() == answer.raw[:1].isupper()
    if isinstance(rival, Opaque | Text):
        if not candidate.condition and _OTHER_WORDS.match(candidate.text):
            return False
        rival = read_answer(candidate.text.split()[0])
    if not _comparable(answer, rival):
        return False
    answers = [answer]
    if candidate.noun:
        answers.append(read_answer(f"{text}\\text{{ {candidate.noun}}}"))
    rivals = [rival]
    with_unit = _GLUED.fullmatch(candidate.text)
    if with_unit is not None:
        rivals.append(read_answer(f"{with_unit[1]}\\text{{ {with_unit[2]}}}"))
    for other in rivals:
        if same(other) or any(_restates(one, other) for one in answers):
            return False
    measured = isinstance(rival, Value) and rival.unit is not None and rival.unit.measured
    bare = all(isinstance(one, Value) and one.unit is None for one in answers)
    return candidate.condition or not (measured and bare)


def contradicts(answer: Answer, rival: Answer) -> bool:
    """Whether a later statement is of another answer; sentences and lists of words are none."""
    if isinstance(rival, Listing):
        whole = isinstance(answer, Listing)
        return bool(rival.items) and all(
            not isinstance(item, Opaque | Text) if whole else _comparable(answer, item)
            for item in rival.items
        )
    if isinstance(rival, Text):
        return isinstance(answer, Text)
    return not isinstance(rival, Opaque)


def _comparable(answer: Answer, rival: Answer) -> bool:
    """Whether one could stand for the other: values and equations, or two of one type."""
    if isinstance(rival, Opaque | Text):
        return False
    if isinstance(answer, Value) and isinstance(rival, Equation):
        return rival.label is not None
    if isinstance(answer, Value) and isinstance(rival, Value):
        # a name in the text is no candidate for a number
        return bool(tree.symbols(answer.node)) == bool(tree.symbols(rival.node))
    if isinstance(answer, Value | Equation):
        return isinstance(rival, Value | Equation)
    if isinstance(answer, Based) and isinstance(rival, Based):
        return answer.base == rival.base
    return type(answer) is type(rival)


def _restates(answer: Answer, rival: Answer) -> bool:
    """Whether the rival is the answer in another unit, writing or rounding."""
    if same_answer(answer, rival, Steps())[0] or same_answer(rival, answer, Steps())[0]:
        return True
    if not isinstance(rival, Value):
        return False
    return same_answer(dataclasses.replace(rival, approx=True), answer, Steps())[0]
