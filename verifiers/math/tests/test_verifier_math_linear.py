"""Long repetitive completions: what took quadratic time would keep this module busy for minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_verifier_math import MathParams, make
from prime_verifier_math.boxes import find_boxes

from prime_core.api import Completion, Score, Task
from prime_core.testing.context import OfflineContext

SIZE = 200_000

TEXTS = {
    "spaces": " " * SIZE,
    "line feeds": "\n" * SIZE,
    "spaced line feeds": "\n \n" * (SIZE // 3),
    "hashes": "#" * SIZE,
    "dollars in a box": rf"\boxed{{{'$' * SIZE}}}",
    "prices in a box": rf"\boxed{{{'$5' * (SIZE // 2)}}}",
    "formulas in a box": rf"\boxed{{{'so $1$ and ' * (SIZE // 11)}}}",
    "unclosed boxes before braces": r"\boxed{" * 400 + "{ " * (SIZE // 2),
    "unclosed boxes before dollars": r"\boxed{{" * 400 + "$ " * (SIZE // 2),
    "answer and spaces": "answer" + " " * SIZE,
    "answer is and spaces": "answer is" + " " * SIZE + "8",
    "a box and closings": r"\boxed{8}" + "$) " * (SIZE // 3),
    "a box and is": r"\boxed{8}" + " is" * (SIZE // 3),
    "open tags": "<think" * (SIZE // 6),
    "a closing tag that stays open": "</think" + " " * SIZE,
}


@pytest.mark.parametrize("name", TEXTS)
def test_long_repetition_is_judged_wrong(name: str) -> None:
    verifier = make(MathParams(), OfflineContext(Path("unused")))
    score = verifier.verify(Task("1", (), "7"), Completion(TEXTS[name]))
    assert isinstance(score, Score)
    assert score.value == 0.0


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (r"\boxed{7$", ["7"]),
        (r"\boxed{\{1, 2\}\) so \boxed{8}", [r"\{1, 2\}", "8"]),
        (r"} \boxed{a{b}c} {", ["a{b}c"]),
        (r"\boxed{\boxed{3}}", ["{3}"]),
        (r"\boxed7 and \boxed -12.5", ["7", "-12.5"]),
        (r"\boxed{$5$}", ["$5$"]),
        (r"\boxed{never" + " closed" * 400 + "$", []),
    ],
)
def test_boxes_are_found_whatever_the_braces_around(text: str, contents: list[str]) -> None:
    assert [box.content for box in find_boxes(text)] == contents


@pytest.mark.parametrize(
    "text",
    ["### Final Answer\n7", "**Answer:** 7", "> Answer: 7", "\n\nanswer   is 7"],
)
def test_headings_state_the_answer(text: str) -> None:
    verifier = make(MathParams(), OfflineContext(Path("unused")))
    score = verifier.verify(Task("1", (), "7"), Completion(text))
    assert isinstance(score, Score)
    assert score.value == 1.0
