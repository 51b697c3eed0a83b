"""The environment over small files of its own and over the shared word problems."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from prime_env_jsonl import JsonlEnvironment, JsonlParams, make, prime_environments
from pydantic import ValidationError

from prime_core.api import DatasetError, Instruction, Message
from prime_core.testing.context import OfflineContext

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared"))


class FixedRng:
    def below(self, n: int) -> int:
        return 4 % n

    def word(self) -> int:
        return 4

    def uniform(self) -> float:
        return 0.5


ROWS = [
    {"problem_id": "a", "prompt": "1+1?", "gold_standard_solution": "2", "task_type": "math"},
    {"problem_id": "b", "prompt": "2+0?", "gold_standard_solution": "2", "task_type": "math"},
    {"problem_id": "c", "prompt": "3+0?", "gold_standard_solution": "3", "task_type": "math"},
    {"problem_id": "d", "prompt": "Sky?", "gold_standard_solution": "blue", "task_type": "text"},
]


def environment(
    tmp_path: Path, rows: list[dict[str, Any]] = ROWS, **params: Any
) -> JsonlEnvironment:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = JsonlParams.model_validate({"url": str(path), **params})
    return make(given, OfflineContext(tmp_path))


def test_tasks_keep_the_order_of_the_file_and_the_filter_of_types(tmp_path: Path) -> None:
    assert [task.id for task in environment(tmp_path).tasks()] == ["a", "b", "c", "d"]
    math = environment(tmp_path, task_types=["math"])
    assert [task.id for task in math.tasks()] == ["a", "b", "c"]
    assert math.info.chance_level == pytest.approx(2 / 3)


def test_suffix_and_system_prompt_are_part_of_the_task_and_its_digest(tmp_path: Path) -> None:
    plain = environment(tmp_path)
    asked = environment(tmp_path, prompt_suffix="Answer after ####.", system_prompt="Be brief.")
    assert asked.tasks()[0].prompt == (
        Message("system", "Be brief."),
        Message("user", "1+1?\n\nAnswer after ####."),
    )
    assert plain.info.dataset_digest != asked.info.dataset_digest


def test_a_task_with_a_system_message_of_its_own_keeps_it(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "own"}, {"role": "user", "content": "u"}]
    made = environment(tmp_path, [{"prompt": messages}], system_prompt="all")
    assert made.tasks()[0].prompt[0] == Message("system", "all\n\nown")


def test_the_instruction_goes_to_the_message_that_it_names(tmp_path: Path) -> None:
    made = environment(tmp_path)
    task = made.tasks()[0]
    assert tuple(made.render(task, None)) == task.prompt
    assert tuple(made.render(task, Instruction("Think.", "user"))) == (
        Message("user", "1+1?\n\nThink."),
    )
    assert tuple(made.render(task, Instruction("Think.", "system"))) == (
        Message("system", "Think."),
        Message("user", "1+1?"),
    )
    with_system = environment(tmp_path, system_prompt="Be brief.")
    rendered = with_system.render(with_system.tasks()[0], Instruction("Think.", "system"))
    assert rendered[0] == Message("system", "Be brief.\n\nThink.")


def test_gold_and_wrong_follow_the_answer_format(tmp_path: Path) -> None:
    made = environment(tmp_path)
    number, text = made.tasks()[0], made.tasks()[3]
    assert (made.gold(number), made.wrong(number, FixedRng())) == ("#### 2", "#### 7")
    assert (made.gold(text), made.wrong(text, FixedRng())) == ("#### blue", "#### not blue")
    plain = environment(tmp_path, answer_format="{gold}")
    assert plain.gold(number) == "2"


def test_a_task_without_gold_has_none_to_give(tmp_path: Path) -> None:
    made = environment(tmp_path, [{"prompt": "x"}])
    assert made.info.chance_level == 0.0
    with pytest.raises(DatasetError, match="no gold answer"):
        made.gold(made.tasks()[0])


def test_the_verifier_is_named_and_can_be_another(tmp_path: Path) -> None:
    assert environment(tmp_path).verifier == "exact"
    assert environment(tmp_path, verifier="math").verifier == "math"


def test_a_pass_rate_column_becomes_metadata(tmp_path: Path) -> None:
    made = environment(tmp_path, [{"prompt": "x", "rate": 0.25}], metadata_columns=["rate"])
    assert made.tasks()[0].metadata == {"rate": 0.25}


def test_bad_rows_stop_the_environment_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="line 1: no column 'question'"):
        environment(tmp_path, columns={"prompt": "question"})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"answer_format": "####"}, "must hold {gold}"),
        ({"score_range": [1, 0]}, "lowest to a higher"),
        ({"prompt_sufix": "x"}, "prompt_sufix"),
        ({}, "url"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, object], words: str) -> None:
    given = {"url": "x.jsonl", **params} if params else params
    with pytest.raises(ValidationError, match=words):
        JsonlParams.model_validate(given)


def test_it_is_registered() -> None:
    assert [spec.name for spec in prime_environments()] == ["jsonl"]


def shared(name: str) -> str:
    path = SHARED / "data" / name
    if not path.is_file():
        pytest.skip(f"the shared data set {name} isn't here; set PRIME_SHARED to its folder")
    return str(path)


def test_svamp_loads_through_its_documented_mapping(tmp_path: Path) -> None:
    params = JsonlParams.model_validate(
        {
            "url": shared("svamp/test.jsonl"),
            "sha256": "d0826ff1264f3860e46fc4e71db9e31d2d188960db87090e22677f9493e67a0d",
            "columns": {
                "problem_id": "ID",
                "prompt": "{Body} {Question}",
                "gold_standard_solution": "Answer",
                "task_type": "Type",
            },
            "prompt_suffix": "Give the final number after ####.",
        }
    )
    made = make(params, OfflineContext(tmp_path))
    assert len(made.tasks()) == 1000
    task = made.tasks()[0]
    assert (task.id, task.gold, task.task_type) == ("chal-777", "145", "Common-Division")
    assert task.prompt[0].content.endswith(
        "each group of bananas?\n\nGive the final number after ####."
    )
    assert made.gold(task) == "#### 145"


@pytest.mark.parametrize(("name", "rows"), [("train", 7473), ("test", 1319)])
def test_gsm8k_loads_through_its_documented_mapping(name: str, rows: int, tmp_path: Path) -> None:
    params = JsonlParams.model_validate(
        {
            "url": shared(f"gsm8k/{name}.jsonl"),
            "columns": {
                "prompt": "question",
                "gold_standard_solution": {"column": "answer", "after": "####"},
            },
        }
    )
    made = make(params, OfflineContext(tmp_path))
    assert len(made.tasks()) == rows
    assert all(
        task.gold and task.gold.replace(",", "").lstrip("-").replace(".", "").isdigit()
        for task in made.tasks()
    )
