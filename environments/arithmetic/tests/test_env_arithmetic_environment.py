"""The environment's tasks, prompts, verdicts and second try."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_env_arithmetic import ArithmeticEnvironment, ArithmeticParams, make
from pydantic import ValidationError

from prime_core.api import (
    Completion,
    DatasetError,
    Instruction,
    Message,
    MultiTurnEnvironment,
    Reply,
    TurnState,
)
from prime_core.testing.context import OfflineContext

KINDS = ("addition", "subtraction", "multiplication", "chain", "comparison", "retry")


class PythonRng:
    """The standard library's generator under the api's names."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def word(self) -> int:
        return self._random.getrandbits(64)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def uniform(self) -> float:
        return self._random.random()


def environment(**params: object) -> ArithmeticEnvironment:
    return make(
        ArithmeticParams.model_validate({"limit": 50, **params}), OfflineContext(Path("unused"))
    )


def test_the_demo_prompt_and_answer_are_exactly_these() -> None:
    tasks = environment(digits=2, reversed=True, split="all", limit=10_000).tasks()
    by_prompt = {task.prompt[0].content: task.gold for task in tasks}
    assert len(by_prompt) == 10_000
    assert by_prompt["37+85="] == "221"
    assert by_prompt["07+05="] == "21"
    assert by_prompt["00+00="] == "0"


@pytest.mark.parametrize("kind", KINDS)
def test_train_and_test_share_no_task_and_cover_all(kind: str) -> None:
    size = {"chain": 9000}.get(kind, 100)
    ids = {
        split: [
            task.id for task in environment(kind=kind, digits=1, split=split, limit=size).tasks()
        ]
        for split in ("train", "test", "all")
    }
    assert len(ids["all"]) == len(set(ids["all"])) == size
    assert not set(ids["train"]) & set(ids["test"])
    assert sorted(ids["train"] + ids["test"]) == sorted(ids["all"])
    assert 0 < len(ids["test"]) < size / 4


def test_the_commuted_twin_of_a_held_out_problem_is_held_out() -> None:
    held_out = {
        task.id.removeprefix("addition:")
        for task in environment(split="test", limit=10_000).tasks()
    }
    assert held_out == {"+".join(reversed(expression.split("+"))) for expression in held_out}


def test_style_and_seed_move_no_task_to_the_other_side() -> None:
    plain = {task.id for task in environment(split="test", limit=10_000).tasks()}
    other = environment(split="test", limit=10_000, seed=7, style="words", reversed=True)
    assert plain == {task.id for task in other.tasks()}


def test_tasks_are_the_same_in_the_same_order_every_time_and_at_random_access() -> None:
    first, second = environment(seed=3), environment(seed=3)
    assert [first.tasks()[i] for i in reversed(range(50))] == list(second.tasks())[::-1]
    assert first.tasks()[2:4] == list(first.tasks())[2:4]
    assert first.tasks()[-1] == list(first.tasks())[-1]
    assert first.info.dataset_digest == second.info.dataset_digest
    assert environment(seed=4).info.dataset_digest != first.info.dataset_digest


def test_digest_is_fixed() -> None:
    # A change of this value changes every lock file that names it: it needs a new major version.
    digest = environment(limit=20, reversed=True).info.dataset_digest
    assert digest == "e4dc176729d3f25ee8a6a57e4fc01f0fb110cc5d0c3ec9c342f17676ece98c4a"


def test_a_space_of_many_digits_costs_nothing_until_asked() -> None:
    tasks = environment(kind="chain", digits=9, terms=6, split="test").tasks()
    assert len(tasks) == 50
    assert len({task.id for task in tasks}) == 50


@pytest.mark.parametrize("style", ["compact", "words"])
@pytest.mark.parametrize(
    ("kind", "reverse"),
    [(kind, reverse) for kind in KINDS for reverse in (False, True) if kind != "comparison"]
    + [("comparison", False)],
)
def test_gold_is_right_and_wrong_is_wrong(kind: str, style: str, reverse: bool) -> None:
    made = environment(kind=kind, style=style, reversed=reverse)
    for i, task in enumerate(made.tasks()):
        gold = made.verifier.verify(task, Completion(f" {made.gold(task)}\n"))
        wrong = made.verifier.verify(task, Completion(made.wrong(task, PythonRng(i))))
        assert (gold.status, gold.value) == ("scored", 1.0)
        assert (wrong.status, wrong.value) == ("scored", 0.0)


@pytest.mark.parametrize("kind", ["addition", "subtraction", "multiplication", "chain"])
def test_answers_equal_what_python_computes(kind: str) -> None:
    for task in environment(kind=kind).tasks():
        expression = task.id.split(":")[1]
        numbers = "".join(
            part.lstrip("0") or "0" if part.isdigit() else part
            for part in expression.replace("+", " + ")
            .replace("-", " - ")
            .replace("*", " * ")
            .split()
        )
        assert task.gold == str(eval(numbers))


@pytest.mark.parametrize(
    "text", ["", " ", "12 2", "122.", "= 122", "one", "1e2", "١٢٢", "12\x002", "\ud800", "--1"]
)
def test_what_is_no_number_is_invalid_output(text: str) -> None:
    made = environment()
    score = made.verifier.verify(made.tasks()[0], Completion(text))
    assert (score.status, score.value) == ("invalid_output", 0.0)


@given(st.text(max_size=40))
def test_any_text_gets_a_verdict(text: str) -> None:
    made = environment(kind="comparison", digits=1, limit=1)
    score = made.verifier.verify(made.tasks()[0], Completion(text))
    assert score.status in ("scored", "invalid_output")


def test_a_huge_number_is_judged() -> None:
    made = environment()
    assert made.verifier.verify(made.tasks()[0], Completion("9" * 200_000)).value == 0.0


def test_chance_level_is_what_the_best_constant_answer_gets() -> None:
    made = environment(kind="comparison", limit=10_000)
    scores = [made.verifier.verify(task, Completion("<")).value for task in made.tasks()]
    other = [made.verifier.verify(task, Completion(">")).value for task in made.tasks()]
    assert made.info.chance_level == pytest.approx(max(sum(scores), sum(other)) / len(scores))


def test_render_puts_the_instruction_where_the_budget_says() -> None:
    made = environment()
    task = made.tasks()[0]
    question = task.prompt[0].content
    assert tuple(made.render(task, None)) == (Message("user", question),)
    assert made.render(task, Instruction("Think."))[0].content == f"{question}\n\nThink."
    assert tuple(made.render(task, Instruction("Think.", "system"))) == (
        Message("system", "Think."),
        Message("user", question),
    )


@pytest.mark.parametrize("style", ["compact", "words"])
def test_retry_asks_once_more_after_a_wrong_answer_only(style: str) -> None:
    made = environment(kind="retry", style=style)
    assert isinstance(made, MultiTurnEnvironment)
    task = made.tasks()[0]
    wrong = Message("assistant", made.wrong(task, PythonRng(0)))
    right = Message("assistant", made.gold(task))
    state = TurnState(task, task.prompt, (wrong,), 1)
    reply = made.reply(state)
    assert isinstance(reply, Reply)
    assert task.prompt[0].content in reply.messages[0].content
    assert made.reply(replace(state, messages=(right,))) is None
    messages = (wrong, *reply.messages, right)
    assert made.reply(replace(state, messages=messages, turn=2)) is None
    assert made.verifier.verify(task, Completion(right.content, messages)).value == 0.5
    assert made.verifier.verify(task, Completion(right.content, (right,))).value == 1.0
    assert made.verifier.verify(task, Completion(wrong.content, messages)).value == 0.0


def test_only_retry_has_several_turns() -> None:
    assert not isinstance(environment(), MultiTurnEnvironment)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kind": "division"}, "addition"),
        ({"digits": 0}, "greater than or equal to 1"),
        ({"terms": 4}, "terms belongs to kind chain"),
        ({"second_try_value": 1.0}, "second_try_value belongs to kind retry"),
        ({"kind": "comparison", "reversed": True}, "no digits to reverse"),
        ({"test_share": 1.0}, "less than 1"),
        ({"digit": 2}, "digit"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ArithmeticParams.model_validate(params)


def test_an_empty_split_says_what_to_change() -> None:
    with pytest.raises(DatasetError, match="raise test_share or digits"):
        environment(digits=1, split="test", test_share=1e-9)
