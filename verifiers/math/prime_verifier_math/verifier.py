"""The verifier: extraction, types, comparison, and the evidence of how it was decided.

Made by the factory in `__init__`; a verdict depends on the gold and the completion alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_core.api import Completion, FormatError, Score, Task
from prime_verifier_math.answers import Answer, Based, Choice, Listing, Opaque, Value
from prime_verifier_math.bounds import Steps
from prime_verifier_math.comparison import same_answer
from prime_verifier_math.domains import in_letter_of
from prime_verifier_math.extraction import Extraction, extract
from prime_verifier_math.forms import form, type_name
from prime_verifier_math.golds import GoldReport, check_gold, gold_text, read_gold
from prime_verifier_math.hedges import contradicts, live
from prime_verifier_math.marks import WRAPPED
from prime_verifier_math.params import MathParams
from prime_verifier_math.reading import read_answer, trimmed
from prime_verifier_math.writing import tidy

SHOWN = 200  # characters of any text kept as evidence
_INTEGER = re.compile(r"\s*-?\d{1,40}\s*")


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a verdict came about: what was extracted, both normal forms, the rule that decided."""

    value: float | None
    status: str
    extracted: str
    extraction_rule: str
    gold_type: str
    gold_form: str
    answer_form: str
    rule: str

    def evidence(self) -> dict[str, str]:
        """The same as plain data."""
        return {
            "extracted": self.extracted,
            "extraction_rule": self.extraction_rule,
            "gold_type": self.gold_type,
            "gold_form": self.gold_form,
            "answer_form": self.answer_form,
            "rule": self.rule,
        }


class MathVerifier:
    """1 where the completion's final answer is the gold answer, 0 where it isn't."""

    def __init__(self, params: MathParams) -> None:
        self._params = params

    def verify(self, task: Task, completion: Completion) -> Score:
        """Exactly 0 or 1; invalid_output where no answer is stated; error without a usable gold."""
        if task.gold is None:
            return Score(None, "error", evidence={"kind": "gold", "detail": "no gold answer"})
        told = self.explain(task.gold, completion.text)
        if told.status == "error":
            detail = f"{told.rule}: {told.gold_form}"[:SHOWN]
            return Score(None, "error", evidence={"kind": "gold", "detail": detail})
        if told.status == "scored":
            return Score(told.value, evidence=told.evidence())
        return Score(0.0, "invalid_output", evidence=told.evidence())

    def explain(self, gold: str, completion_text: str) -> Explanation:
        """The verdict with its reasons."""
        found = extract(completion_text, self._params)
        integers = _INTEGER.fullmatch(found.text) and _INTEGER.fullmatch(gold)
        if integers and not found.offered:
            return _integers(gold, found)
        wanted = read_gold(gold)
        if isinstance(wanted, Opaque) and not check_gold(gold).ok:
            return Explanation(None, "error", "", "", "unreadable", form(wanted), "",
                               f"the gold can't be used: {wanted.reason}")  # fmt: skip
        if not found.text:
            return _told(0.0, "invalid_output", found, wanted, None, found.rule)
        answer, same, rule = self._judge(gold, wanted, found)
        return _told(1.0 if same else 0.0, "scored", found, wanted, answer, rule)

    def check_gold(self, gold: str) -> GoldReport:
        """Whether a gold parses to one type and equals itself."""
        return check_gold(gold)

    def second_opinion(self, task: Task, completion: Completion) -> float | None:
        """What math-verify says; None where it can't read the gold."""
        from prime_verifier_math.second_opinion import math_verify_says

        if task.gold is None:
            return None
        return math_verify_says(gold_text(task.gold), completion.text)

    def from_case(self, row: Mapping[str, Any]) -> tuple[Task, Completion]:
        """A task and a completion of a row: completion, gold; optionally id, kind, expected."""
        gold, text = row.get("gold"), row.get("completion")
        if not isinstance(gold, str) or not isinstance(text, str):
            raise FormatError(
                "a case needs the texts `gold` and `completion`",
                where=f"case {row.get('id', '?')}",
                fix="give both as strings",
            )
        return Task(str(row.get("id", "")), (), gold), Completion(text)

    def _judge(self, gold: str, wanted: Answer, found: Extraction) -> tuple[Answer, bool, str]:
        answer = read_answer(found.text)
        same, rule = self._same(gold, wanted, found.text, answer)
        if same and found.rival:
            rival = read_answer(found.rival)
            if contradicts(answer, rival) and not self._same(gold, wanted, "", rival)[0]:
                return answer, False, "another answer is stated behind the box"
        if same and any(
            live(one, answer, found.text, lambda other: self._same(gold, wanted, "", other)[0])
            for one in found.offered
        ):
            return answer, False, "another answer is offered beside the box"
        if not same and found.parts and isinstance(wanted, Listing):
            whole = read_answer(", ".join(found.parts), commas=False)
            if isinstance(whole, Listing) and self._same(gold, wanted, "", whole)[0]:
                return whole, True, "boxes that together are the list"
        if not same and not isinstance(wanted, Listing):
            stated: Sequence[Answer] = ()
            if len(found.parts) > 1:
                stated = [read_answer(part) for part in found.parts]
            elif isinstance(answer, Listing) and answer.kind == "or":
                stated = answer.items
            # one value written twice is no hedge; 5 and 0.05 differ, though each may be 5%
            if len(stated) > 1 and all(
                self._same(gold, wanted, "", one)[0] and same_answer(stated[0], one, Steps())[0]
                for one in stated
            ):
                return stated[-1], True, "one value in several writings"
        return answer, same, rule

    def _same(self, gold: str, wanted: Answer, text: str, answer: Answer) -> tuple[bool, str]:
        same, rule = same_answer(wanted, answer, Steps())
        if same:
            return self._allowed(wanted, answer, rule)
        if isinstance(wanted, Based) and not wanted.negative and wanted.digits.isalnum():
            # digits above 9 without a base read as a product: 1A3
            bare = WRAPPED.sub(r"\1", text).strip(" $").upper()
            if bare == wanted.digits and self._params.base_optional:
                return True, "digits, the base left out"
        if isinstance(answer, Choice) and answer.content and not isinstance(wanted, Choice):
            inner = read_answer(answer.content)  # (B) 12 for 12
            return False if isinstance(inner, Choice) else same_answer(wanted, inner, Steps())[
                0
            ], "the option's value"
        renamed = in_letter_of(trimmed(tidy(gold_text(gold))), trimmed(tidy(text)))
        if renamed is not None:
            return same_answer(wanted, read_answer(renamed), Steps())
        if "," not in text:
            return same, rule
        if isinstance(wanted, Listing) and not isinstance(answer, Listing):
            # 1,234 may be two items of a list; the gold's type says which
            return same_answer(wanted, read_answer(text, commas=False), Steps())
        if isinstance(wanted, Value) and "," in gold:
            return same_answer(read_answer(gold_text(gold), commas=False),
                               read_answer(text, commas=False), Steps())  # fmt: skip
        return same, rule

    def _allowed(self, wanted: Answer, answer: Answer, rule: str) -> tuple[bool, str]:
        """Switch off the coercions that the parameters refuse."""
        if rule == "percent sign left out" and not self._params.percent_sign_optional:
            return False, rule
        if isinstance(wanted, Based) != isinstance(answer, Based) and rule.startswith("digits"):
            return self._params.base_optional, rule
        return True, rule


def _integers(gold: str, found: Extraction) -> Explanation:
    """Both are plain integers: no parser is needed."""
    wanted, answer = int(gold), int(found.text)
    same = wanted == answer
    if same and found.rival:
        rival, value = read_answer(found.rival), read_gold(gold)
        same = not contradicts(value, rival) or same_answer(value, rival, Steps())[0]
    return Explanation(
        1.0 if same else 0.0, "scored", found.text.strip(), found.rule, "integer", str(wanted),
        str(answer), "integers",
    )  # fmt: skip


def _told(
    value: float, status: str, found: Extraction, wanted: Answer, answer: Answer | None, rule: str
) -> Explanation:
    return Explanation(
        value,
        status,
        found.text[:SHOWN],
        found.rule,
        type_name(wanted),
        form(wanted),
        "" if answer is None else form(answer),
        rule[:SHOWN],
    )
