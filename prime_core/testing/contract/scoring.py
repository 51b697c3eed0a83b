"""What the contracts of environments and verifiers share: scoring one text, and texts that hurt.

A verifier may be sync or async; here it's awaited either way.
"""

from __future__ import annotations

import asyncio
import inspect
import math

from prime_core.api import Completion, Message, Score, Task, Verifier

# Each broke some public grader: empty and blank text, a NUL, a lone surrogate's replacement, text
# far beyond an answer's length, numbers that float() accepts, digits int() accepts, and markup.
HOSTILE_TEXTS: tuple[str, ...] = (
    "",
    " \n\t ",
    "\x00",
    "�",
    "x" * 20_000,
    "9" * 5_000,
    "nan",
    "inf",
    "-0",
    "1e309",
    "٣",
    "None",
    "{}",
    "[" * 2_000,
    "\\boxed{",
    "```python\n",
    "</think>",
)


def completion_of(text: str) -> Completion:
    """A completion of one turn that the model ended itself."""
    return Completion(
        text=text,
        messages=(Message("assistant", text),),
        finish_reason="stop",
        token_count=len(text) + 1,
    )


def score_text(verifier: Verifier, task: Task, text: str) -> Score:
    """The verifier's score of one text."""
    answer = verifier.verify(task, completion_of(text))
    if isinstance(answer, Score):
        return answer
    assert inspect.isawaitable(answer), f"verify returned {type(answer).__name__}, not a Score"

    async def finish() -> Score:
        return await answer

    score = asyncio.run(finish())
    assert isinstance(score, Score), f"verify returned {type(score).__name__}, not a Score"
    return score


def check_score(score: Score, lowest: float, highest: float) -> None:
    """The value lies in the range; an invalid output is worth the lowest; parts are finite."""
    assert isinstance(score, Score), f"verify returned {type(score).__name__}, not a Score"
    if score.value is not None:
        assert lowest <= score.value <= highest, f"{score} is outside [{lowest}, {highest}]"
    if score.status == "invalid_output":
        assert score.value == lowest, f"an invalid output is worth the lowest value, not {score}"
    for name, part in score.parts.items():
        assert isinstance(name, str), f"part {name!r} has no name"
        assert math.isfinite(part), f"part {name} is {part}"
