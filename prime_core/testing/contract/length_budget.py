"""What every length budget keeps: targets come from the given words alone and are said in text.

Authors inherit `LengthBudgetContract` and override `make_length_budget`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from prime_core.api import Instruction, LengthBudget, Message, Task
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override
from prime_core.testing.rng import SplitMixRng


class LengthBudgetContract:
    """Inherit, and override `make_length_budget`; override `node_classes` where it has several."""

    @pytest.fixture
    def make_length_budget(self) -> Callable[[], LengthBudget]:
        """A function that makes the length budget anew."""
        made: Callable[[], LengthBudget] = override("make_length_budget", "makes the budget")
        return made

    @pytest.fixture
    def length_budget(self, make_length_budget: Callable[[], LengthBudget]) -> LengthBudget:
        """The length budget under test."""
        return make_length_budget()

    @pytest.fixture
    def node_classes(self) -> Sequence[str]:
        """Classes of nodes that it's configured for."""
        return ("default",)

    @pytest.fixture
    def tasks(self) -> Sequence[Task]:
        """Tasks that targets are drawn for."""
        return [Task(id=f"t{i}", prompt=(Message("user", "2+2"),), gold="4") for i in range(4)]

    def test_has_every_member(self, length_budget: LengthBudget) -> None:
        assert missing_members(length_budget, [LengthBudget]) == []

    def test_targets_are_positive_integers_or_none(
        self, length_budget: LengthBudget, node_classes: Sequence[str], tasks: Sequence[Task]
    ) -> None:
        for target in _draws(length_budget, node_classes, tasks):
            assert target is None or (type(target) is int and target > 0), repr(target)

    def test_equal_words_give_equal_targets(
        self,
        make_length_budget: Callable[[], LengthBudget],
        node_classes: Sequence[str],
        tasks: Sequence[Task],
    ) -> None:
        first, second = make_length_budget(), make_length_budget()
        random.seed(1)
        once = _draws(first, node_classes, tasks)
        random.seed(2)  # a budget that reads global random state differs here
        assert _draws(second, node_classes, tasks) == once

    def test_global_random_state_is_left_alone(
        self, length_budget: LengthBudget, node_classes: Sequence[str], tasks: Sequence[Task]
    ) -> None:
        before = random.getstate()
        _draws(length_budget, node_classes, tasks)
        assert random.getstate() == before

    def test_the_instruction_says_the_target(
        self, length_budget: LengthBudget, node_classes: Sequence[str], tasks: Sequence[Task]
    ) -> None:
        targets = {t for t in _draws(length_budget, node_classes, tasks) if t is not None}
        for target in targets:
            instruction = length_budget.instruction(target)
            assert isinstance(instruction, Instruction)
            assert str(target) in instruction.text, f"{instruction.text!r} hides {target}"
            assert instruction.place in ("system", "user")
            assert length_budget.instruction(target) == instruction


def _draws(
    budget: LengthBudget, node_classes: Sequence[str], tasks: Sequence[Task]
) -> list[int | None]:
    """Targets over classes, tasks, steps and seeds."""
    return [
        budget.draw(SplitMixRng(seed), task, node_class, step)
        for node_class in node_classes
        for task in tasks
        for step in (0, 1, 1000)
        for seed in range(16)
    ]
