"""Whole numbers in words: twenty-four, one hundred and five.

Read where an answer is words and where prose offers a number.
"""

from __future__ import annotations

_NAMES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_SMALL = {name: value for value, name in enumerate(_NAMES.split())}
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
WORD = rf"(?:{'|'.join((*_TENS, *reversed(_SMALL)))}|hundred|thousand|million|billion)"
MAX_WORDS = 12


def numeral(text: str) -> int | None:
    """The number that the words name; None for other words."""
    words = text.lower().replace("-", " ").split()
    if not 0 < len(words) <= MAX_WORDS:
        return None
    total = group = last = 0  # last: the size of what the next word must stay below
    limit = 10**12
    for place, word in enumerate(words):
        if word == "and" and 0 < place < len(words) - 1 and last >= 100:
            continue
        if word in _SMALL or word in _TENS:
            value = _SMALL.get(word, _TENS.get(word, 0))
            if not _fits(value, last):
                return None
            group, last = group + value, 1 if value < 20 else 10
        elif word == "hundred" and last == 1 and 0 < group < 10:
            group, last = group * 100, 100
        elif word in _SCALES and last and _SCALES[word] < limit:
            limit = _SCALES[word]
            total, group, last = total + group * limit, 0, 1000
        else:
            return None
    return total + group


def _fits(value: int, last: int) -> bool:
    """Whether a word may follow: anything first or behind a scale, a digit behind a ten."""
    if last == 0 or last == 1000 or last == 100:
        return True
    return last == 10 and 0 < value < 10
