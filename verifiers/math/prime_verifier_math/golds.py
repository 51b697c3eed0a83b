"""Golds: read once, kept, and checked when a data set loads.

A gold is usable when it parses to one type and equals itself written as an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from prime_verifier_math.answers import Answer, Listing, Opaque
from prime_verifier_math.bounds import Steps
from prime_verifier_math.comparison import same_answer
from prime_verifier_math.forms import type_name
from prime_verifier_math.reading import read_answer
from prime_verifier_math.statements import last_statement


@dataclass(frozen=True, slots=True)
class GoldReport:
    """Whether a gold can be used, its type, and why not."""

    ok: bool
    type: str
    reason: str


def gold_text(gold: str) -> str:
    """The answer of a gold: itself, its box, or what follows `####` of a worked solution."""
    if "\\boxed" in gold:
        from prime_verifier_math.boxes import find_boxes

        boxes = find_boxes(gold)
        if boxes:
            return boxes[-1].content
    if "####" in gold or "\nA:" in gold:
        statement = last_statement(gold, marker=True)
        if statement is not None:
            return statement.value
    return gold


@lru_cache(maxsize=4096)
def read_gold(gold: str) -> Answer:
    """The typed gold; reading depends on the text alone, so that keeping it changes no verdict."""
    return read_answer(gold_text(gold))


def check_gold(gold: str) -> GoldReport:
    """Whether a gold parses to one type and equals itself."""
    if not gold.strip():
        return GoldReport(False, "", "an empty gold answer")
    answer = read_gold(gold)
    name = type_name(answer)
    if isinstance(answer, Opaque):
        if not answer.text or "over a bound" in answer.reason or answer.reason == "empty":
            return GoldReport(False, name, answer.reason)
        if "aren't equal" in answer.reason or "false" in answer.reason:
            return GoldReport(False, name, answer.reason)
    if isinstance(answer, Listing) and answer.kind == "or" and not answer.items:
        return GoldReport(False, name, "an empty list")
    same, rule = same_answer(answer, read_answer(gold_text(gold)), Steps())
    if not same:
        return GoldReport(False, name, f"it doesn't equal itself: {rule}")
    return GoldReport(True, name, "")
