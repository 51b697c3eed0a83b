"""Public data sets by their layouts, unusable rows, duplicates, overlaps with evaluation sets."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from prime_env_math import MathEnvironment, MathParams, make
from prime_env_math.overlap import words

from prime_core.api import DatasetError
from prime_core.testing.context import OfflineContext

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared")) / "data"


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def load(folder: Path, source: str, rows: list[dict[str, Any]], **params: Any) -> MathEnvironment:
    dataset = {"url": write(folder / "rows.jsonl", rows), **params.pop("dataset", {})}
    given = MathParams.model_validate({"source": source, "dataset": dataset, **params})
    return make(given, OfflineContext(folder))


# One row of each data set, in its authors' columns.
ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "gsm8k": ({"question": "Q", "answer": "2*3=<<2*3=6>>6\n#### 6"}, "6"),
    "math": (
        {"problem": "Q", "level": "Level 1", "type": "Algebra", "solution": r"So \boxed{\frac12}."},
        r"\frac12",
    ),
    "numina_math_1_5": (
        {
            "problem": "Q",
            "solution": "s",
            "answer": r"\sqrt{2}",
            "problem_type": "Algebra",
            "question_type": "math-word-problem",
            "problem_is_valid": "Yes",
            "solution_is_valid": "Yes",
            "source": "olympiads",
            "synthetic": False,
        },
        r"\sqrt{2}",
    ),
    "deepscaler": ({"problem": "Q", "answer": "7", "solution": ""}, "7"),
    "math_500": (
        {
            "problem": "Q",
            "solution": "s",
            "answer": "(3, 4)",
            "subject": "Algebra",
            "level": 2,
            "unique_id": "test/1",
        },
        "(3, 4)",
    ),
    "aime": ({"id": 60, "problem": "Q", "solution": "s", "answer": "025", "url": "u"}, "025"),
    "intellect_2_rl": (
        {
            "problem_id": "p",
            "task_type": "verifiable_math",
            "prompt": "Q",
            "verification_info": '{"ground_truth": "12"}',
            "solve_rate_qwen_r1_distill_7b": 0.25,
        },
        "12",
    ),
}


@pytest.mark.parametrize("source", ROWS)
def test_a_layout_finds_problem_and_gold(tmp_path: Path, source: str) -> None:
    row, gold = ROWS[source]
    (task,) = load(tmp_path, source, [row]).tasks()
    assert task.gold == gold
    assert task.prompt[-1].content.startswith("Q\n\n")


def test_the_rl_set_is_routed_by_type_and_keeps_its_solve_rate(tmp_path: Path) -> None:
    row = ROWS["intellect_2_rl"][0]
    rows = [row, {**row, "problem_id": "c", "prompt": "Code", "task_type": "prime_rl_code"}]
    made = load(tmp_path, "intellect_2_rl", rows)
    assert [task.id for task in made.tasks()] == ["p"]
    assert made.tasks()[0].metadata == {"solve_rate_qwen_r1_distill_7b": 0.25}
    assert made.tasks()[0].verification == {"ground_truth": "12"}


def test_rows_without_a_usable_answer_are_left_out_and_named(tmp_path: Path) -> None:
    row = ROWS["numina_math_1_5"][0]
    rows = [
        row,
        {**row, "problem": "P", "answer": "proof"},
        {**row, "problem": "N", "answer": "notfound"},
        {**row, "problem": "I", "problem_is_valid": "Problem not solved"},
        {**row, "problem": "T", "question_type": "proof"},
    ]
    made = load(tmp_path, "numina_math_1_5", rows)
    assert len(made.tasks()) == 1
    text = "\n".join(made.notes)
    assert "1 tasks left out (it asks for a proof): sha256:" in text
    assert "1 tasks left out (it has no answer)" in text
    assert "1 tasks left out (its authors call the problem invalid)" in text
    boxless = {"problem": "B", "solution": r"no \boxed", "level": "1", "type": "x"}
    made = load(tmp_path, "math", [ROWS["math"][0], boxless])
    assert "it has no gold answer" in made.notes[0]


def test_own_columns_replace_those_of_the_layout(tmp_path: Path) -> None:
    row = {"Problem": "Q", "Answer": 33, "ID": "2024-I-4"}
    columns = {"prompt": "Problem", "gold_standard_solution": "Answer", "problem_id": "ID"}
    dataset = {"columns": columns, "metadata_columns": []}
    (task,) = load(tmp_path, "aime", [row], dataset=dataset).tasks()
    assert (task.id, task.gold) == ("2024-I-4", "33")
    (task,) = load(tmp_path, "custom", [row], dataset=dataset).tasks()
    assert (task.id, task.gold) == ("2024-I-4", "33")


def test_duplicates_are_dropped_reported_or_refused(tmp_path: Path) -> None:
    rows = [
        {"problem": "What is $\\dfrac{1}{2} + 1$?", "answer": "3/2"},
        {"problem": "what is  \\frac{1}{2}+1 ?", "answer": "1.5"},
        {"problem": "What is $\\frac{1}{2} - 1$?", "answer": "-1/2"},
    ]
    made = load(tmp_path, "deepscaler", rows)
    assert [task.gold for task in made.tasks()] == ["3/2", "-1/2"]
    assert "1 duplicates, left out" in made.notes[0]
    assert "with another gold answer" in made.notes[0]
    kept = load(tmp_path, "deepscaler", rows, duplicates="report")
    assert len(kept.tasks()) == 3
    assert "1 duplicates, kept" in kept.notes[0]
    with pytest.raises(DatasetError, match="asks the same as"):
        load(tmp_path, "deepscaler", rows, duplicates="refuse")


LONG = (
    "A farmer has a rectangular field whose length is three times its width and whose "
    "perimeter is {} metres. What is its area in square metres?"
)


def test_problems_of_evaluation_sets_are_found(tmp_path: Path) -> None:
    held = write(
        tmp_path / "held.jsonl",
        [{"problem": LONG.format(64), "answer": "192"}, {"problem": "What is 2+2?", "answer": "4"}],
    )
    rows = [
        {"problem": "what is 2 + 2", "answer": "4"},
        {"problem": f"Solve this. {LONG.format(80)}", "answer": "300"},
        {"problem": "What is the perimeter of a square with side 3?", "answer": "12"},
    ]
    sets = [{"url": held}]
    with pytest.raises(DatasetError, match="2 overlap") as caught:
        load(tmp_path, "deepscaler", rows, evaluation_sets=sets)
    assert "asks the same as" in str(caught.value)
    assert "shares words with" in str(caught.value)
    made = load(tmp_path, "deepscaler", rows, evaluation_sets=sets, overlap="drop")
    assert [task.gold for task in made.tasks()] == ["12"]
    made = load(tmp_path, "deepscaler", rows, evaluation_sets=sets, overlap="report")
    assert len(made.tasks()) == 3
    made = load(tmp_path, "deepscaler", rows, evaluation_sets=sets, overlap="drop", ngram=40)
    assert [task.gold for task in made.tasks()] == ["300", "12"]


def test_an_evaluation_set_may_name_columns_of_its_own(tmp_path: Path) -> None:
    held = write(tmp_path / "held.jsonl", [{"question": "What is 2+2?"}])
    sets = [{"url": held, "columns": {"prompt": "question"}}]
    rows = [{"problem": "What is 2+2?", "answer": "4"}]
    with pytest.raises(DatasetError, match="1 overlap"):
        load(tmp_path, "deepscaler", rows, evaluation_sets=sets)
    with pytest.raises(DatasetError, match="no task is left"):
        load(tmp_path, "deepscaler", rows, evaluation_sets=sets, overlap="drop")


def test_writing_doesnt_hide_a_problem_and_signs_tell_two_apart() -> None:
    assert words(r"Find $\left( x + 1 \right)$.") == words("find (x+1)")
    assert words("Find x+1") != words("Find x-1")
    assert words("Find −1") == words("find -1")
    assert words("How many is 12?") != words("How many is 1 2?")


@pytest.mark.parametrize(
    ("source", "file", "dataset", "count"),
    [  # four rows of math_train have an empty answer
        ("gsm8k", "gsm8k/test.jsonl", {}, 1319),
        ("math_500", "math500/math500.json", {"metadata_columns": []}, 500),
        ("deepscaler", "math_train/math_train.json", {}, 7470),
    ],
)
def test_the_shared_data_sets_load(
    tmp_path: Path, source: str, file: str, dataset: dict[str, Any], count: int
) -> None:
    path = SHARED / file
    if not path.is_file():
        pytest.skip(f"the shared data set {file} isn't here; set PRIME_SHARED to its folder")
    params = {"source": source, "dataset": {"url": str(path), **dataset}, "duplicates": "report"}
    made = make(MathParams.model_validate(params), OfflineContext(tmp_path))
    assert len(made.tasks()) == count
