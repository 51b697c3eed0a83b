"""Procedural problems: right programs are right, wrong ones wrong; order and split hold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prime_env_code import CodeEnvironment, CodeEnvParams, make, prime_environments
from prime_env_code.families import FAMILIES
from prime_env_code.procedural import wrong_sources
from pydantic import ValidationError

from prime_core.api import Instruction, Message
from prime_core.testing.context import OfflineContext


def environment(prompt_template: str | None = None, **problems: Any) -> CodeEnvironment:
    given: dict[str, Any] = {"problems": {"limit": 60, **problems}}
    if prompt_template is not None:
        given["prompt_template"] = prompt_template
    return make(CodeEnvParams.model_validate(given), OfflineContext(Path("unused")))


def run(source: str, task: Any) -> list[Any]:
    """The outputs of a family's own source on a task's tests, without a jail."""
    if task.metadata["kind"] == "function":
        names: dict[str, Any] = {}
        exec(source, names)
        inputs = json.loads(json.dumps([row["input"] for row in task.verification["tests"]]))
        return [names["solve"](*arguments) for arguments in inputs]
    outputs = []
    for row in task.verification["tests"]:
        printed: list[str] = []

        def write(*items: Any, to: list[str] = printed) -> None:
            to.append(" ".join(map(str, items)) + "\n")

        lines = f"lines = iter({row['input']!r}.split('\\n'))"
        program = source.replace('lines = iter(sys.stdin.read().split("\\n"))', lines)
        exec(program, {"print": write})
        outputs.append("".join(printed))
    return outputs


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_right_and_wrong_programs_and_tests_that_tell_them_apart(
    family: str,
) -> None:
    tasks = [
        task
        for task in environment(
            limit=150, split="all", difficulty=FAMILIES[family].difficulty
        ).tasks()
        if task.metadata["family"] == family
    ]
    assert len(tasks) >= 10
    for task in tasks:
        wanted = [row["output"] for row in task.verification["tests"]]
        assert len(wanted) >= 6
        assert len({json.dumps(each) for each in wanted}) >= 2
        assert task.gold is not None
        assert run(task.gold, task) == wanted
        sources = wrong_sources(task)
        assert len(sources) >= 2, task.metadata
        for source in sources:
            assert run(source, task) != wanted


def test_tasks_are_the_same_in_the_same_order_every_time_and_at_random_access() -> None:
    first, second = environment(seed=3), environment(seed=3)
    assert [first.tasks()[i] for i in reversed(range(60))] == list(second.tasks())[::-1]
    assert first.tasks()[2:4] == list(first.tasks())[2:4]
    assert first.tasks()[-1] == list(first.tasks())[-1]
    with pytest.raises(IndexError):
        first.tasks()[60]
    assert first.info == second.info
    assert environment(seed=4).info.dataset_digest != first.info.dataset_digest


def test_digest_is_fixed() -> None:
    # A change of this value changes every lock file that names it: it needs a new major version.
    assert environment(limit=22).info.dataset_digest == DIGEST


DIGEST = "02360f5387d58a344489817df5e0048c6c792db81fe50cd8dde65334f7550f36"


def test_train_and_test_share_no_problem_whatever_seed_and_kind() -> None:
    def keys(**params: Any) -> set[str]:
        tasks = environment(limit=300, **params).tasks()
        return {
            json.dumps([task.metadata["family"], task.metadata["parameters"]]) for task in tasks
        }

    held_out = keys(split="test", kind="function")
    assert not held_out & keys(split="train", seed=1)
    assert not held_out & keys(split="train", kind="stdin")
    assert held_out & keys(split="all", seed=1)


def test_kinds_and_difficulties_are_what_was_asked_for() -> None:
    both = Counter(task.metadata["kind"] for task in environment().tasks())
    assert min(both["stdin"], both["function"]) > 10
    assert {task.metadata["kind"] for task in environment(kind="stdin").tasks()} == {"stdin"}
    for difficulty in ("easy", "medium", "hard"):
        tasks = environment(difficulty=difficulty).tasks()
        assert {task.metadata["difficulty"] for task in tasks} == {difficulty}
    assert len({task.id for task in environment(limit=500).tasks()}) == 500


def test_a_small_held_out_share_is_found_all_the_same() -> None:
    assert len(environment(limit=5, split="test", test_share=0.004).tasks()) == 5


def test_the_prompt_says_what_to_read_and_shows_two_examples_only() -> None:
    for task in environment().tasks():
        text = task.prompt[0].content
        rows = task.verification["tests"]
        assert "@" not in text.replace("sign @", "")
        assert "```python" in text
        if task.metadata["kind"] == "stdin":
            assert rows[0]["input"].strip() in text
        else:
            assert "def" not in text.split("Example")[0]
            assert "solve(" in text
        assert text.count("Example") >= 2


def test_template_system_prompt_and_instruction_land_where_they_should() -> None:
    made = environment(prompt_template="Q: {problem} A:")
    task = made.tasks()[0]
    assert task.prompt[0].content.startswith("Q: ")
    assert tuple(made.render(task, None)) == task.prompt
    params = CodeEnvParams.model_validate({"system_prompt": "Be brief.", "problems": {"limit": 1}})
    made = make(params, OfflineContext(Path("unused")))
    rendered = made.render(made.tasks()[0], Instruction("Think.", "system"))
    assert rendered[0] == Message("system", "Be brief.\n\nThink.")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"prompt_template": "no place"}, "must hold {problem}"),
        ({"problems": {"difficulty": "brutal"}}, "easy"),
        ({"problems": {"limit": 0}}, "greater than or equal to 1"),
        ({"problems": {}, "dataset": {"url": "x.jsonl"}}, "not both"),
        ({"dataset": {"url": "x.jsonl", "schema": "codeforces"}}, "livecodebench"),
        ({"problem": {}}, "problem"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        CodeEnvParams.model_validate(params)


def test_it_is_registered() -> None:
    assert [spec.name for spec in prime_environments()] == ["code"]
