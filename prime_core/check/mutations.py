"""Small changes to a gold completion that make it wrong.

Rule T06 scores them. Invariant: each changes what the answer says, not how it's written; where that
can't be known (programs, prose) there are few or none.
"""

from __future__ import annotations

import re

SIGNIFICANT = 9  # digits; the tenth of a computed float may differ between right ways to get it
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
            at = _last_place(text)
            last = f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}"
            other = text.lstrip("-") if text.startswith("-") else f"-{text}"
            return [last, f"1{text.lstrip('-')}", *([other] if float(text) else [])]
        value = int(text)
        near = [value + 1, value - 1, value * 10 + 7, value + 100]
        return [str(each) for each in [*near, *([-value] if value else [])]]
    if re.fullmatch(r"[A-Za-z]{4,24}", text):
        return [text[::-1] if text[::-1].lower() != text.lower() else text + "x", f"{text}ness"]
    return []


def _last_place(number: str) -> int:
    """Where the last digit stands that counts; what a float has behind it is noise."""
    zeros = len(number) - len(number.lstrip("-0."))
    places = [at for at, sign in enumerate(number) if sign.isdigit() and at >= zeros]
    return places[:SIGNIFICANT][-1] if places else len(number) - 1
