r"""Wrong answers that look right: a gold answer with one small thing changed.

Called by `wrong` of the environment, for golds of any data set. Invariant: no change keeps the
value: numbers move, names differ, and what has neither number nor name gets a term added.
"""

from __future__ import annotations

import re

from prime_core.api import Rng

# Digits that make a value: not after _ or ^{ (a base, an index), so that text stays readable.
NUMBER = re.compile(r"(?<![0-9_.,])[0-9]{1,18}(?![0-9]*[.,]?[0-9])")
TEXT = re.compile(r"\\(?:text|textbf|mathrm)\{([^{}\\]*[A-Za-z]{2}[^{}\\]*)\}")
CHOICE = re.compile(r"(?:\\(?:text|textbf|mathrm)\{)?\(?([A-E])\)?\}?")
LETTERS = "ABCDE"
# An escaped brace is two characters long and opens nothing.
PIECE = re.compile(r"\\boxed\s*\{|\\.|[{}]", re.DOTALL)


def near_miss(gold: str, rng: Rng) -> str:
    """A wrong answer close to the gold one; the same for the same words of `rng`."""
    choice = CHOICE.fullmatch(gold.strip())
    if choice is not None:
        others = LETTERS.replace(choice[1], "")
        return others[rng.below(len(others))]
    text = TEXT.search(gold)
    if text is not None or (gold.strip().replace(" ", "").isalpha() and len(gold.strip()) > 1):
        return rf"\text{{not {text[1] if text else gold.strip()}}}"
    numbers = list(NUMBER.finditer(gold))
    if numbers:
        # The last one: in a^2 or x_1 the first may be all there is, but never a separate answer.
        found = numbers[-1]
        moved = int(found[0]) + 1 + rng.below(9)
        return f"{gold[: found.start()]}{moved}{gold[found.end() :]}"
    if r"\infty" in gold:
        return "0"
    return f"{gold}+{1 + rng.below(9)}"


def last_box(text: str) -> str | None:
    r"""What stands in the last closed \boxed{}, the innermost of nested ones; None for none.

    One pass, whatever the text: an unclosed box costs no second look.
    """
    open_braces: list[int] = []  # where the inside of a box starts; -1 for another brace
    start, end = -1, -1
    for found in PIECE.finditer(text):
        piece = found[0]
        if piece == "}":
            inside = open_braces.pop() if open_braces else -1
            if inside > start:
                start, end = inside, found.start()
        elif piece.endswith("{") and len(piece) != 2:
            open_braces.append(found.end() if piece.startswith("\\") else -1)
    return None if start < 0 else text[start:end].strip()
