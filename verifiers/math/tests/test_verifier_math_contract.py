"""The math verifier keeps the contract of verifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from prime_verifier_math import MathParams, MathVerifier, make

from prime_core.api import Completion, FormatError, Message, Task, Verifier
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import VerifierContract

Case = tuple[Task, str]


def task(gold: str) -> Task:
    return Task(f"gold {gold}", (Message("user", "?"),), gold)


class TestMath(VerifierContract):
    @pytest.fixture(params=[False, True], ids=["stated", "last_number"])
    def make_verifier(self, request: pytest.FixtureRequest) -> Callable[[], Verifier]:
        return lambda: make(MathParams(last_number=request.param), OfflineContext(Path("unused")))

    @pytest.fixture
    def solved(self) -> Sequence[Case]:
        return [
            (task("42"), r"So $\boxed{42}$."),
            (task(r"\frac12"), r"\boxed{0.5}"),
            (task("x^2-1"), r"\boxed{(x-1)(x+1)}"),
            (task(r"\text{(C)}"), "The answer is C."),
        ]

    @pytest.fixture
    def unsolved(self) -> Sequence[Case]:
        return [
            (task("42"), r"\boxed{41}"),
            (task("42"), r"\boxed{42} or \boxed{43}"),
            (task(r"(0,1)"), r"\boxed{[0,1]}"),
            (task("55"), r"\boxed{\sum_{k=1}^{10} k}"),
        ]


VERIFIER = MathVerifier(MathParams())


@pytest.mark.parametrize("gold", [None, "", "  ", "x = 1 = 2"])
def test_a_gold_that_cant_be_used_is_an_error_not_a_wrong_answer(gold: str | None) -> None:
    score = VERIFIER.verify(Task("1", (), gold), Completion(r"\boxed{1}"))
    assert (score.status, score.value) == ("error", None)
    assert score.evidence["kind"] == "gold"


def test_evidence_is_short_plain_text() -> None:
    for text in (r"\boxed{" + "x+" * 400 + "1}", r"\boxed{" + "9" * 5000 + "}", r"\boxed{2}"):
        score = VERIFIER.verify(task("x+1"), Completion(text))
        assert set(score.evidence) == {
            *("extracted", "extraction_rule", "gold_type", "gold_form", "answer_form", "rule")
        }
        assert all(isinstance(v, str) and len(v) <= 200 for v in score.evidence.values())


def test_a_case_row_gives_a_task_and_a_completion() -> None:
    row = {"id": "a", "completion": r"\boxed{3}", "gold": "3", "expected": True, "kind": "k"}
    made, completion = VERIFIER.from_case(row)
    assert (made.id, made.gold, completion.text) == ("a", "3", r"\boxed{3}")
    with pytest.raises(FormatError, match="a case needs"):
        VERIFIER.from_case({"id": "a", "gold": 3})


@pytest.mark.parametrize(
    ("params", "gold", "text"),
    [
        ({"number_marker": False, "statements": False}, "7", "#### 7"),
        ({"number_marker": False}, "7", "#### 7"),
        ({"statements": False}, "7", "The answer is 7."),
        ({"percent_sign_optional": False}, r"7\%", r"\boxed{7}"),
        ({"base_optional": False}, "101_2", r"\boxed{101}"),
        ({}, "7", "So it is 7"),
    ],
)
def test_what_the_parameters_switch_off_is_refused(
    params: dict[str, bool], gold: str, text: str
) -> None:
    score = MathVerifier(MathParams(**params)).verify(task(gold), Completion(text))
    assert score.value == 0.0


def test_the_last_number_counts_only_where_it_is_asked_for() -> None:
    verifier = MathVerifier(MathParams(last_number=True))
    assert verifier.verify(task("7"), Completion("3 + 4, so 7.")).value == 1.0
    assert verifier.verify(task("7"), Completion(r"7 \boxed{8}")).value == 0.0
