"""Small changes to a gold completion that make it wrong.

Rule T06 scores them. Invariant: each changes what the answer says, not how it's written; where that
can't be known (programs, prose) there are few or none.
"""

from __future__ import annotations

import re

NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,9})?(?![\w.])")


def mutated(gold: str, answer: str) -> list[str]:
    """Wrong versions of a gold completion.

    Args:
        gold: the whole completion.
        answer: the task's gold answer, which `gold` may wrap; "" where there is none.
    """
    target = answer if answer and answer in gold else gold
    before, after = gold.split(target, 1) if target else (gold, "")
    changed = [each for each in _changes(target) if each != target]
    return [f"{before}{each}{after}" for each in dict.fromkeys(changed)]


def _changes(target: str) -> list[str]:
    """Of a number: neighbours, the other sign, ten times. Of one word: another one."""
    text = target.strip()
    match = NUMBER.fullmatch(text)
    if match is not None:
        if "." in text:
            # One unit in the last place is the nearest neighbour; closer may be rounding.
            last = f"{text[:-1]}{(int(text[-1]) + 1) % 10}"
            other = text.lstrip("-") if text.startswith("-") else f"-{text}"
            return [last, f"1{text.lstrip('-')}", *([other] if float(text) else [])]
        value = int(text)
        near = [value + 1, value - 1, value * 10 + 7, value + 100]
        return [str(each) for each in [*near, *([-value] if value else [])]]
    if re.fullmatch(r"[A-Za-z]{4,24}", text):
        return [text[::-1] if text[::-1].lower() != text.lower() else text + "x", f"{text}ness"]
    return []
