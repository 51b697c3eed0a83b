"""Replies, verdicts and held-out tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_env_calculator import CalculatorEnvironment, CalculatorParams, make
from prime_env_calculator.problems import problem

from prime_core.api import Completion, Message, TurnState
from prime_core.testing.context import OfflineContext


@pytest.fixture(scope="module")
def environment() -> CalculatorEnvironment:
    return make(CalculatorParams(limit=40, calls=2), OfflineContext(Path("unused")))


def said(environment: CalculatorEnvironment, *turns: str) -> str | None:
    """What the environment answers after these turns of the model."""
    task = environment.tasks()[0]
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        if index:
            messages.append(Message("user", "<result>1</result>"))
        messages.append(Message("assistant", turn))
    reply = environment.reply(TurnState(task, task.prompt, tuple(messages), len(turns)))
    return None if reply is None else reply.messages[0].content


def test_the_calculator_answers_until_its_calls_are_used(
    environment: CalculatorEnvironment,
) -> None:
    call = "first <calc>1+1</calc> then <calc>6*7</calc>"
    assert said(environment, call) == "<result>42</result>"
    assert said(environment, call, call) == "<result>42</result>"
    assert said(environment, call, call, call) is None


def test_a_bad_expression_is_explained(environment: CalculatorEnvironment) -> None:
    assert said(environment, "<calc>1/0</calc>") == "<error>division by zero</error>"


@pytest.mark.parametrize(
    "turn", ["I think so.", "<answer>3</answer>", "<calc>1</calc><answer>1</answer>", "<calc>1"]
)
def test_a_turn_that_asks_for_nothing_ends_it(
    environment: CalculatorEnvironment, turn: str
) -> None:
    assert said(environment, turn) is None


@pytest.mark.parametrize(
    ("text", "value", "status"),
    [
        ("so <answer> {gold} </answer>.", 1.0, "scored"),
        ("<answer>{commas}</answer>", 1.0, "scored"),
        ("<answer>{other}</answer>", 0.0, "scored"),
        ("{gold}", 0.0, "invalid_output"),
        ("<answer>{gold}", 0.0, "invalid_output"),
        ("<answer>{gold}</answer><answer>{other}</answer>", 0.0, "invalid_output"),
        ("<answer><answer>{gold}</answer>", 0.0, "invalid_output"),
        ("<answer>about {gold}</answer>", 0.0, "invalid_output"),
        ("<answer>{gold}.0</answer>", 0.0, "invalid_output"),
        ("<answer>٣</answer>", 0.0, "invalid_output"),
    ],
)
def test_the_answer_must_be_the_number_alone(
    environment: CalculatorEnvironment, text: str, value: float, status: str
) -> None:
    for task in environment.tasks():
        gold = int(task.gold or "")
        filled = text.format(gold=gold, commas=f"{gold:,}", other=gold + 1)
        score = environment.verifier.verify(task, Completion(filled))
        assert (score.value, score.status) == (value, status), filled


def test_golds_are_the_values_of_the_stories(environment: CalculatorEnvironment) -> None:
    by_key = {made.key: made for made in (problem(0, index, 3) for index in range(200))}
    for task in environment.tasks():
        assert task.gold == str(eval(by_key[task.id].expression))


def test_held_out_tasks_are_apart() -> None:
    made = {
        split: {
            task.id
            for task in make(
                CalculatorParams.model_validate({"split": split, "limit": 200, "digits": 1}),
                OfflineContext(Path("unused")),
            ).tasks()
        }
        for split in ("train", "test")
    }
    assert made["train"]
    assert made["test"]
    assert not made["train"] & made["test"]
