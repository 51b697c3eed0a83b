"""Targets, weights, classes and the instruction."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from prime_length_budgets import DiscreteBudget, DiscreteParams, make_discrete
from pydantic import ValidationError

from prime_core.api import Instruction, Task
from prime_core.testing.context import OfflineContext

TASK = Task("1", ())


class CountingRng:
    """Gives 0, 1, 2, ... modulo n; anything but `below` is a mistake."""

    def __init__(self) -> None:
        self.calls = 0

    def below(self, n: int) -> int:
        self.calls += 1
        return (self.calls - 1) % n

    def word(self) -> int:
        raise AssertionError("word was drawn")

    def uniform(self) -> float:
        raise AssertionError("a float was drawn")


def discrete(**params: object) -> DiscreteBudget:
    return make_discrete(DiscreteParams.model_validate(params), OfflineContext(Path("unused")))


def draws(budget: DiscreteBudget, count: int, node_class: str = "default") -> Counter[int]:
    rng = CountingRng()
    counted = Counter(budget.draw(rng, TASK, node_class, 0) for _ in range(count))
    assert rng.calls == count
    return counted


def test_every_target_is_drawn_equally_often_without_weights() -> None:
    assert draws(discrete(), 40) == {1000: 10, 2000: 10, 3000: 10, 4000: 10}


def test_weights_are_whole_number_shares() -> None:
    assert draws(discrete(targets=[10, 20, 30], weights=[1, 2, 5]), 8) == {10: 1, 20: 2, 30: 5}


def test_a_class_draws_from_its_own_targets_with_their_weights() -> None:
    budget = discrete(targets=[10, 20, 30], weights=[1, 2, 5], classes={"small": [10, 20]})
    assert draws(budget, 6, "small") == {10: 2, 20: 4}
    assert draws(budget, 8, "large") == {10: 1, 20: 2, 30: 5}


def test_instruction_says_the_paper_sentence() -> None:
    assert discrete().instruction(2000) == Instruction(
        "Think for 2000 tokens before giving a response.", "user"
    )
    other = discrete(instruction="{budget} tokens, in \\boxed{}.", place="system")
    assert other.instruction(5) == Instruction("5 tokens, in \\boxed{}.", "system")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"targets": []}, "at least 1 item"),
        ({"targets": [0]}, "greater than 0"),
        ({"targets": [5, 5]}, "stands twice"),
        ({"targets": [5, 6], "weights": [1]}, "1 weights for 2 targets"),
        ({"targets": [5, 6], "weights": [1, 0]}, "greater than 0"),
        ({"targets": [5], "classes": {"a": [6]}}, "which targets doesn't hold"),
        ({"targets": [5], "classes": {"a": []}}, "at least one target"),
        ({"instruction": "Think."}, "must hold {budget}"),
        ({"place": "assistant"}, "system"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        DiscreteParams.model_validate(params)
