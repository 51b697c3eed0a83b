"""What every environment keeps: a stable task list, honest info, prompts and scores that repeat.

Authors inherit `EnvironmentContract` and override `make_environment`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import ClassVar

import pytest

from prime_core.api import (
    Environment,
    Instruction,
    Message,
    MultiTurnEnvironment,
    Reply,
    Task,
    TurnState,
    Verifier,
)
from prime_core.api.datasets import tasks_digest
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import check_json, override, spread
from prime_core.testing.contract.scoring import HOSTILE_TEXTS, check_score, score_text
from prime_core.testing.rng import SplitMixRng


class EnvironmentContract:
    """Inherit, and override `make_environment`; override `verifier` where yours is named.

    Attributes:
        sample: tasks that are looked at, spread over the list.
        whole: a list of at most this many tasks is also looked at as a whole.
    """

    sample: ClassVar[int] = 24
    whole: ClassVar[int] = 20_000

    @pytest.fixture
    def make_environment(self) -> Callable[[], Environment]:
        """A function that makes the environment anew, as a second host would."""
        made: Callable[[], Environment] = override("make_environment", "makes the environment")
        return made

    @pytest.fixture
    def environment(self, make_environment: Callable[[], Environment]) -> Environment:
        """The environment under test."""
        return make_environment()

    @pytest.fixture
    def verifier(self, environment: Environment) -> Verifier:
        """The environment's own verifier; a named one is tested by its own contract."""
        found = environment.verifier
        if isinstance(found, str):
            pytest.skip(
                f"the verifier is the plugin {found!r}; override `verifier` to judge with it"
            )
        return found

    @pytest.fixture
    def tasks(self, environment: Environment) -> list[Task]:
        """Tasks spread over the whole list."""
        every = environment.tasks()
        return [every[index] for index in spread(len(every), self.sample)]

    def test_has_every_member(self, environment: Environment) -> None:
        assert missing_members(environment, [Environment]) == []

    def test_info_is_complete(self, environment: Environment) -> None:
        info = environment.info
        lowest, highest = info.score_range
        assert info.name, "info.name is empty"
        assert info.version, "info.version is empty"
        assert info.licence, "info.licence is empty: say under which licence the tasks come"
        assert re.fullmatch(r"[0-9a-f]{64}", info.dataset_digest), "dataset_digest is no SHA-256"
        assert math.isfinite(lowest), "the lowest score isn't finite"
        assert math.isfinite(highest), "the highest score isn't finite"
        assert lowest < highest, f"score_range {info.score_range} is empty"
        assert lowest <= info.chance_level < highest, "a policy that doesn't look can't be perfect"

    def test_info_is_the_same_every_time(self, make_environment: Callable[[], Environment]) -> None:
        first = make_environment()
        assert first.info == first.info
        assert make_environment().info == first.info

    def test_digest_covers_the_tasks(self, environment: Environment) -> None:
        every = environment.tasks()
        if len(every) > self.whole:
            pytest.skip(f"{len(every)} tasks are more than `whole`, {self.whole}")
        assert environment.info.dataset_digest == tasks_digest(every)

    def test_there_are_tasks_and_random_access(self, environment: Environment) -> None:
        every = environment.tasks()
        assert len(every) > 0, "the environment has no tasks"
        assert every[len(every) - 1] == every[-1]
        with pytest.raises(IndexError):
            every[len(every)]

    def test_tasks_are_the_same_every_time(
        self, environment: Environment, make_environment: Callable[[], Environment]
    ) -> None:
        first, second = environment.tasks(), make_environment().tasks()
        assert len(first) == len(second)
        indices = spread(len(first), self.sample)
        forwards = [first[index] for index in indices]
        backwards = [second[index] for index in reversed(indices)]
        assert forwards == backwards[::-1]

    def test_ids_are_unique(self, environment: Environment) -> None:
        every = environment.tasks()
        ids = [every[index].id for index in spread(len(every), self.whole)]
        assert all(ids), "a task has an empty id"
        assert len(set(ids)) == len(ids), "two tasks have one id"

    def test_tasks_survive_json(self, tasks: list[Task]) -> None:
        for task in tasks:
            check_json(f"verification of {task.id}", task.verification)
            check_json(f"metadata of {task.id}", task.metadata)
            check_json(f"gold of {task.id}", task.gold)
            check_json(f"prompt of {task.id}", [message.content for message in task.prompt])

    def test_prompts_end_where_the_model_speaks(
        self, environment: Environment, tasks: list[Task]
    ) -> None:
        for task in tasks:
            prompt = environment.render(task, None)
            assert prompt, f"{task.id} is rendered as nothing"
            assert all(isinstance(message, Message) for message in prompt)
            assert prompt[-1].role != "assistant", f"{task.id} ends with the model's own words"

    def test_rendering_repeats(
        self, make_environment: Callable[[], Environment], tasks: list[Task]
    ) -> None:
        first, second = make_environment(), make_environment()
        once = [tuple(first.render(task, None)) for task in tasks]
        again = [tuple(second.render(task, None)) for task in reversed(tasks)]
        assert once == again[::-1]

    @pytest.mark.parametrize("place", ["system", "user"])
    def test_prompts_carry_the_instruction(
        self, environment: Environment, tasks: list[Task], place: str
    ) -> None:
        text = "Think for 123 tokens before giving a response."
        instruction = Instruction(text, "system" if place == "system" else "user")
        for task in tasks:
            plain = tuple(environment.render(task, None))
            prompt = environment.render(task, instruction)
            holders = [message.role for message in prompt if text in message.content]
            assert holders == [place], f"the instruction of {task.id} stands in {holders}"
            assert tuple(environment.render(task, None)) == plain, "render changed the task"

    def test_gold_scores_highest(
        self, environment: Environment, verifier: Verifier, tasks: list[Task]
    ) -> None:
        gold = getattr(environment, "gold", None)
        if gold is None:
            pytest.skip("the environment has no gold(task)")
        for task in tasks:
            score = score_text(verifier, task, gold(task))
            assert (score.status, score.value) == ("scored", environment.info.score_range[1]), (
                f"the gold completion of {task.id} gets {score}"
            )

    def test_wrong_scores_lower(
        self, environment: Environment, verifier: Verifier, tasks: list[Task]
    ) -> None:
        wrong = getattr(environment, "wrong", None)
        if wrong is None:
            pytest.skip("the environment has no wrong(task, rng)")
        highest = environment.info.score_range[1]
        for task in tasks:
            for seed in range(4):
                text = wrong(task, SplitMixRng(seed))
                assert text == wrong(task, SplitMixRng(seed)), "equal seeds, other completions"
                score = score_text(verifier, task, text)
                assert score.value is None or score.value < highest, (
                    f"the wrong completion {text!r} of {task.id} gets {score}"
                )

    def test_saying_nothing_never_wins(
        self, environment: Environment, verifier: Verifier, tasks: list[Task]
    ) -> None:
        for task in tasks:
            for text in ("", " \n"):
                score = score_text(verifier, task, text)
                assert score.value is None or score.value < environment.info.score_range[1], (
                    f"{text!r} gets {score} for {task.id}"
                )

    def test_scores_lie_in_the_range_whatever_the_model_says(
        self, environment: Environment, verifier: Verifier, tasks: list[Task]
    ) -> None:
        lowest, highest = environment.info.score_range
        for task in tasks[:4]:
            for text in HOSTILE_TEXTS:
                check_score(score_text(verifier, task, text), lowest, highest)

    def test_scores_repeat_in_any_order(
        self, environment: Environment, verifier: Verifier, tasks: list[Task]
    ) -> None:
        if not environment.info.deterministic:
            pytest.skip("the environment declares itself not deterministic")
        work = [
            (task, text) for task in tasks[:6] for text in (*HOSTILE_TEXTS[:6], task.gold or "")
        ]
        once = [score_text(verifier, *item) for item in work]
        again = [score_text(verifier, *item) for item in reversed(work)]
        assert [(s.value, s.status) for s in once] == [(s.value, s.status) for s in again[::-1]]

    def test_replies_depend_on_the_state_alone(
        self, environment: Environment, tasks: list[Task]
    ) -> None:
        if not isinstance(environment, MultiTurnEnvironment):
            pytest.skip("the environment has one turn")
        for task in tasks[:6]:
            prompt = tuple(environment.render(task, None))
            state = TurnState(task, prompt, (Message("assistant", "x"),), turn=1)
            reply = environment.reply(state)
            assert reply is None or isinstance(reply, Reply)
            assert environment.reply(state) == reply
            if reply is not None:
                assert reply.messages, "a reply without messages doesn't end the rollout; use None"
                assert all(message.role != "assistant" for message in reply.messages)
