"""What every verifier keeps: right answers win, others don't, and only the arguments count.

Authors inherit `VerifierContract` and override `make_verifier`, `solved` and `unsolved`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from prime_core.api import Task, Verifier
from prime_core.api.datasets import task_json
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override
from prime_core.testing.contract.scoring import HOSTILE_TEXTS, check_score, score_text

Case = tuple[Task, str]


class VerifierContract:
    """Inherit, and override the first three fixtures."""

    @pytest.fixture
    def make_verifier(self) -> Callable[[], Verifier]:
        """A function that makes the verifier anew, as a second host would."""
        made: Callable[[], Verifier] = override("make_verifier", "makes the verifier")
        return made

    @pytest.fixture
    def solved(self) -> Sequence[Case]:
        """Pairs of a task and a completion that solves it."""
        cases: Sequence[Case] = override("solved", "(task, completion that solves it) pairs")
        return cases

    @pytest.fixture
    def unsolved(self) -> Sequence[Case]:
        """Pairs of a task and a completion that doesn't solve it."""
        cases: Sequence[Case] = override("unsolved", "(task, completion that doesn't) pairs")
        return cases

    @pytest.fixture
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return (0.0, 1.0)

    @pytest.fixture
    def verifier(self, make_verifier: Callable[[], Verifier]) -> Verifier:
        """The verifier under test."""
        return make_verifier()

    def test_has_every_member(self, verifier: Verifier) -> None:
        assert missing_members(verifier, [Verifier]) == []

    def test_right_answers_score_highest(
        self, verifier: Verifier, solved: Sequence[Case], score_range: tuple[float, float]
    ) -> None:
        assert solved, "give at least one case"
        for task, text in solved:
            score = score_text(verifier, task, text)
            assert (score.status, score.value) == ("scored", score_range[1]), (
                f"{text!r} solves {task.id} and gets {score}"
            )

    def test_wrong_answers_score_lower(
        self, verifier: Verifier, unsolved: Sequence[Case], score_range: tuple[float, float]
    ) -> None:
        assert unsolved, "give at least one case"
        for task, text in unsolved:
            score = score_text(verifier, task, text)
            assert score.status in ("scored", "invalid_output"), f"{text!r} gets {score}"
            assert score.value is not None
            assert score.value < score_range[1], f"{text!r} doesn't solve {task.id}, gets {score}"

    def test_scores_lie_in_the_range_whatever_the_model_says(
        self, verifier: Verifier, solved: Sequence[Case], score_range: tuple[float, float]
    ) -> None:
        for task, _ in solved[:4]:
            for text in HOSTILE_TEXTS:
                check_score(score_text(verifier, task, text), *score_range)

    def test_saying_nothing_never_wins(
        self, verifier: Verifier, solved: Sequence[Case], score_range: tuple[float, float]
    ) -> None:
        for task, _ in solved:
            score = score_text(verifier, task, "")
            assert score.value is None or score.value < score_range[1], f"'' gets {score}"

    def test_scores_repeat_in_any_order(
        self,
        make_verifier: Callable[[], Verifier],
        solved: Sequence[Case],
        unsolved: Sequence[Case],
    ) -> None:
        work = [*solved, *unsolved, *((solved[0][0], text) for text in HOSTILE_TEXTS[:6])]
        first, second = make_verifier(), make_verifier()
        once = [score_text(first, *case) for case in work]
        again = [score_text(second, *case) for case in reversed(work)]
        assert [(s.value, s.status) for s in once] == [(s.value, s.status) for s in again[::-1]]

    def test_the_task_is_left_alone(
        self, verifier: Verifier, solved: Sequence[Case], unsolved: Sequence[Case]
    ) -> None:
        for task, text in [*solved, *unsolved]:
            before = task_json(task)
            score_text(verifier, task, text)
            assert task_json(task) == before, f"verify changed task {task.id}"
