"""The two verifiers: exact numbers and exact text.

Made by the factory in `__init__`; both take one pass over a completion of any length and judge
what it says last, so that naming many answers wins nothing.
"""

from __future__ import annotations

from prime_core.api import Completion, Score, Task
from prime_verifier_exact.numbers import Number, after_marker, last_number, parse
from prime_verifier_exact.params import ExactParams

SHOWN = 64  # characters of an answer kept as evidence


def no_gold(task: Task) -> Score:
    """A task without a usable gold answer is the data's mistake, never the model's."""
    shown = None if task.gold is None else task.gold[:SHOWN]
    return Score(None, "error", evidence={"kind": "gold", "detail": f"gold answer {shown!r}"})


class NumberVerifier:
    """The number behind the last `####` must equal the gold number exactly.

    Several markers: the last one counts, even where nothing stands behind it. No number there is
    invalid_output; with `last_number`, a completion without any marker is judged by its last
    number.
    """

    def __init__(self, params: ExactParams) -> None:
        self._marker = params.marker or "####"
        self._last_number = params.last_number

    def verify(self, task: Task, completion: Completion) -> Score:
        """1 for the gold number, 0 for another, invalid_output for none."""
        gold = self._gold(task)
        if gold is None:
            return no_gold(task)
        answer = after_marker(completion.text, self._marker)
        if answer is None and self._last_number and self._marker not in completion.text:
            answer = last_number(completion.text)
        if answer is None:
            return Score(0.0, "invalid_output", evidence={"reason": "no number"})
        return Score(1.0 if answer.equals(gold) else 0.0, evidence={"answer": _shown(answer)})

    def _gold(self, task: Task) -> Number | None:
        if task.gold is None:
            return None
        if self._marker in task.gold:
            return after_marker(task.gold, self._marker)
        return parse(task.gold.strip())


def _shown(number: Number) -> str:
    text = "-" * number.negative + (number.whole or "0")
    text += f".{number.decimals}" if number.decimals else ""
    text += f"/{number.divisor}" if number.divisor else ""
    return text[:SHOWN]


class TextVerifier:
    """The whole completion (or what follows the last marker) must equal the gold text."""

    def __init__(self, params: ExactParams) -> None:
        self._params = params

    def verify(self, task: Task, completion: Completion) -> Score:
        """1 for the gold text, 0 for another, invalid_output for none."""
        gold = None if task.gold is None else self._normal(task.gold)
        if not gold:
            return no_gold(task)
        text = completion.text
        if self._params.marker is not None:
            _, found, text = text.rpartition(self._params.marker)
            if not found:
                return Score(0.0, "invalid_output", evidence={"reason": "no marker"})
        answer = self._normal(text)
        if not answer:
            return Score(0.0, "invalid_output", evidence={"reason": "no text"})
        return Score(1.0 if answer == gold else 0.0, evidence={"answer": answer[:SHOWN]})

    def _normal(self, text: str) -> str:
        if self._params.whitespace == "collapse":
            text = " ".join(text.split())
        elif self._params.whitespace == "strip":
            text = text.strip()
        return text.casefold() if self._params.ignore_case else text
