"""The verdict: the one answer of the model's last turn must be the number, written plainly."""

from __future__ import annotations

import re

from prime_core.api import Completion, Score, Task

ANSWER = re.compile(r"<answer>([^<]{0,200})</answer>")
CALL = re.compile(r"<calc>([^<]{0,2000})</calc>")
_NUMBER = re.compile(r"-?(?:[0-9]{1,60}|[0-9]{1,3}(?:,[0-9]{3}){1,19})")
SHOWN = 64  # characters of an answer kept as evidence


class CalculatorVerifier:
    """Exact: 1 for the right number in the one `<answer>`, else 0.

    No answer, something other than a number, or more than one answer is invalid_output: who offers
    two hedges. Whether the calculator was asked changes nothing.
    """

    def verify(self, task: Task, completion: Completion) -> Score:
        """Score the model's last turn."""
        if task.gold is None:
            return Score(None, "error", evidence={"kind": "gold", "detail": "the task has none"})
        found = ANSWER.findall(completion.text)
        if len(found) != 1 or completion.text.count("<answer>") != 1:
            return Score(0.0, "invalid_output", evidence={"answers": len(found)})
        answer = found[0].strip()
        if _NUMBER.fullmatch(answer) is None:
            return Score(0.0, "invalid_output", evidence={"answer": answer[:SHOWN]})
        right = int(answer.replace(",", "")) == int(task.gold)
        return Score(float(right), evidence={"answer": answer[:SHOWN]})
