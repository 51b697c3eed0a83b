"""The environment: styles, few-shot prompts, splits, wrong answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prime_env_math import MathEnvironment, MathParams, make, prime_environments
from prime_env_math.near_misses import last_box, near_miss
from prime_env_math.procedural import TEMPLATES, problem_of
from pydantic import ValidationError

from prime_core.api import Instruction, Message
from prime_core.testing.context import OfflineContext
from prime_core.testing.rng import SplitMixRng


def environment(**params: Any) -> MathEnvironment:
    return make(MathParams.model_validate(params), OfflineContext(Path("unused")))


def test_topics_and_levels_choose_the_templates() -> None:
    every = environment(limit=2000).tasks()
    assert {task.metadata["template"] for task in every} == {each.name for each in TEMPLATES}
    some = environment(topics=["geometry"], levels=[1, 3], limit=300).tasks()
    assert {task.metadata["topic"] for task in some} == {"geometry"}
    assert {task.metadata["level"] for task in some} == {1, 3}


def test_the_first_tasks_take_the_templates_in_turns() -> None:
    first = environment(split="all").tasks()[: len(TEMPLATES)]
    assert [task.metadata["template"] for task in first] == [each.name for each in TEMPLATES]


def test_small_spaces_run_out_and_the_rest_goes_on() -> None:
    made = environment(topics=["calculus"], levels=[3], split="all", limit=1_000_000).tasks()
    assert len(made) == sum(
        each.size for each in TEMPLATES if (each.topic, each.level) == ("calculus", 3)
    )
    assert len({task.id for task in made}) == len(made)


def test_held_out_problems_are_never_in_training_whatever_the_rest() -> None:
    held = {task.id for task in environment(split="test", limit=500).tasks()}
    for params in ({"seed": 5}, {"style": "gsm8k"}, {"levels": [2]}, {"limit": 12_000}):
        assert held.isdisjoint(task.id for task in environment(**params).tasks())
    assert {task.id for task in environment(split="all", limit=500).tasks()} & held


def test_the_seed_orders_and_nothing_else() -> None:
    one = environment(topics=["counting"], levels=[3], split="all", limit=100_000).tasks()
    other = environment(topics=["counting"], levels=[3], split="all", limit=100_000, seed=1).tasks()
    ids = [task.id for task in one], [task.id for task in other]
    assert ids[0] != ids[1]
    assert sorted(ids[0]) == sorted(ids[1])


def test_styles_ask_and_answer_alike() -> None:
    for style, words, ending in (
        ("boxed", r"\boxed{}", "}."),
        ("gsm8k", "####", ""),
    ):
        made = environment(style=style, limit=60)
        task = made.tasks()[1]
        assert words in task.prompt[-1].content
        assert made.gold(task).endswith(f"{task.gold}{ending}")
    plain = environment(style="plain", limit=60).tasks()[1]
    assert plain.prompt == (Message("user", problem_of(plain.id).question),)
    own = environment(instruction="Be exact.", limit=60).tasks()[1]
    assert own.prompt[0].content == f"{problem_of(own.id).question}\n\nBe exact."


def test_examples_are_turns_in_the_same_style() -> None:
    made = environment(few_shot=2, system_prompt="You are a careful solver.", limit=60)
    roles = [message.role for message in made.tasks()[0].prompt]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    prompt = made.tasks()[0].prompt
    assert all(r"\boxed{}" in prompt[i].content for i in (1, 3, 5))
    assert prompt[2].content.endswith(r"The answer is \boxed{15}.")
    own = {"problem": "1+1?", "answer": "2"}
    said = environment(few_shot=1, examples=[own], style="gsm8k", limit=60).tasks()[0].prompt
    assert said[1] == Message("assistant", "#### 2")


def test_a_length_budget_goes_to_the_message_that_it_names() -> None:
    made = environment(few_shot=1, limit=60)
    task = made.tasks()[0]
    wish = Instruction("Think for 1000 tokens before giving a response.")
    assert made.render(task, wish)[-1].content.endswith(wish.text)
    assert wish.text not in made.render(task, wish)[0].content
    system = made.render(task, Instruction(wish.text, "system"))
    assert system[0] == Message("system", wish.text)


def test_prompts_are_part_of_the_digest() -> None:
    digests = {
        environment(limit=60, **params).info.dataset_digest
        for params in ({}, {"style": "plain"}, {"system_prompt": "x"}, {"few_shot": 1})
    }
    assert len(digests) == 4


def test_wrong_answers_are_usual_mistakes_or_small_changes() -> None:
    made = environment(limit=200)
    for task in made.tasks():
        answers = {made.wrong(task, SplitMixRng(seed)) for seed in range(12)}
        assert made.gold(task) not in answers
        near = problem_of(task.id).near
        assert not near or any(
            rf"\boxed{{{mistake}}}" in said for mistake in near for said in answers
        )


@pytest.mark.parametrize(
    ("gold", "like"),
    [
        ("12", "1[0-9]|2[0-9]"),
        (r"\frac{1}{2}", r"\\frac\{1\}\{(?:[3-9]|1[01])\}"),
        (r"\sqrt{51}", r"\\sqrt\{[56][0-9]\}"),
        ("x+y", r"x\+y\+[1-9]"),
        (r"\text{Evelyn}", r"\\text\{not Evelyn\}"),
        ("Evelyn", r"\\text\{not Evelyn\}"),
        ("B", "[ACDE]"),
        (r"\text{(C)}", "[ABDE]"),
        (r"(-\infty, 3)", r"\(-\\infty, ([4-9]|1[0-2])\)"),
        (r"\infty", "0"),
        (r"2\pi", r"([3-9]|1[01])\\pi"),
    ],
)
def test_a_small_change_is_made_to_any_gold(gold: str, like: str) -> None:
    for seed in range(8):
        said = near_miss(gold, SplitMixRng(seed))
        assert re.fullmatch(like, said), said


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"so \boxed{42}.", "42"),
        (r"\boxed{1} then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\left\{1,2\right\}}", r"\left\{1,2\right\}"),
        (r"\boxed {7}", "7"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{a\}b} c}", r"a\}b"),
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed 7", None),
        ("no box", None),
        (r"\boxed{" * 50_000, None),
    ],
)
def test_the_last_closed_box(text: str, box: str | None) -> None:
    assert last_box(text) == box


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"source": "gsm8k"}, "needs dataset"),
        ({"source": "gsm8k", "dataset": {"url": "x.jsonl"}, "seed": 1}, "seed belongs"),
        ({"dataset": {"url": "x.jsonl"}}, "dataset belongs to a data set"),
        ({"overlap": "drop"}, "overlap belongs to a data set"),
        ({"source": "nowhere"}, "procedural"),
        ({"few_shot": 9}, "there are 4"),
        ({"topics": []}, "at least 1"),
        ({"levels": [4]}, "1, 2 or 3"),
        ({"style": "loud"}, "boxed"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        MathParams.model_validate(params)


def test_the_plugin_registers_itself() -> None:
    (spec,) = prime_environments()
    assert (spec.name, spec.params) == ("math", MathParams)
    assert environment(limit=60).verifier == "math"
    assert environment(limit=60, verifier="exact").verifier == "exact"
