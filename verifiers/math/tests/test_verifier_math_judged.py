"""A table of judged answers, by kind: what a careful reader accepts and what not.

`judged.jsonl` holds a row a gold: answers in a box, or whole completions; right ones and wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prime_verifier_math import MathParams, MathVerifier, denials

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "judged.jsonl").read_text(encoding="utf-8").splitlines()
]
KINDS = sorted({row["kind"] for row in ROWS})
VERIFIER = MathVerifier(MathParams())


def verdict(row: dict[str, Any], text: str) -> float | None:
    completion = f"So the final answer is $\\boxed{{{text}}}$." if row["form"] == "box" else text
    return VERIFIER.explain(row["gold"], completion).value


@pytest.mark.parametrize("kind", KINDS)
def test_right_answers_are_accepted(kind: str) -> None:
    refused = [
        (row["gold"], text)
        for row in ROWS
        if row["kind"] == kind
        for text in row["right"]
        if verdict(row, text) != 1.0
    ]
    assert refused == []


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_answers_are_refused(kind: str) -> None:
    accepted = [
        (row["gold"], text)
        for row in ROWS
        if row["kind"] == kind
        for text in row["wrong"]
        if verdict(row, text) != 0.0
    ]
    assert accepted == []


def test_every_gold_of_the_table_can_be_used() -> None:
    assert [row["gold"] for row in ROWS if not VERIFIER.check_gold(row["gold"]).ok] == []


def test_no_denial_is_missed_for_want_of_a_trigger() -> None:
    """The words that are looked for first stand in everything that the patterns match."""
    said = {text for row in ROWS for text in (*row["right"], *row["wrong"])}
    starts = {
        text[: match.start()] for text in said for match in re.finditer(r"\\boxed|[:=]\s", text)
    }
    found = [start for start in starts if denials._denied(start[-denials.NEAR :])]
    assert len(found) > 15
    assert [start for start in found if not denials.denied(start)] == []
