"""A table of judged answers, by kind: what a careful reader accepts and what not.

`judged.jsonl` holds a row a gold: answers in a box, or whole completions; right ones and wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prime_verifier_math import MathParams, MathVerifier

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
