"""Rows become tasks: GENESYS names, columns, paths, templates, constants, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from prime_core.api import Message, Task
from prime_core.api.datasets import DatasetSource, in_split
from prime_core.api.datasets.mapping import RowMapping

# Golden values: a change would move held-out tasks into training.
HELD_OUT = [3, 7, 23, 32, 33]


def task(row: dict[str, Any], **source: object) -> Task:
    return RowMapping(DatasetSource.model_validate({"url": "x.jsonl", **source})).task(row)


def test_genesys_fields_are_read_by_name() -> None:
    row = {
        "problem_id": "p1",
        "source": "synthetic-1",
        "task_type": "verifiable_math",
        "in_source_id": 7,
        "prompt": "1+1?",
        "gold_standard_solution": "2",
        "verification_info": "{'ground_truth': '2', 'ok': True}",
        "metadata": '{"difficulty": null}',
        "llm_response": "ignored",
    }
    assert task(row) == Task(
        id="p1",
        prompt=(Message("user", "1+1?"),),
        gold="2",
        verification={"ground_truth": "2", "ok": True},
        metadata={"difficulty": None, "in_source_id": "7"},
        task_type="verifiable_math",
        source="synthetic-1",
    )


def test_only_the_prompt_is_needed_and_it_names_the_task() -> None:
    one, other = task({"prompt": "a"}), task({"prompt": "b"})
    assert one.id.startswith("sha256:")
    assert one.id != other.id
    assert one == task({"prompt": "a"})
    assert (one.gold, one.verification, one.metadata) == (None, {}, {})


def test_columns_paths_templates_constants_and_markers() -> None:
    made = task(
        {"q": {"body": ["Two", "Three"]}, "a": "so\n#### 4\n#### 5 ", "n": 3.0, "k.x": True},
        columns={
            "problem_id": "id-{n}",
            "prompt": "{q.body.1}{{}} {q.body.0}",
            "gold_standard_solution": {"column": "a", "after": "####"},
            "source": {"const": "home"},
            "metadata": {"const": {"a": 1}},
        },
        metadata_columns=["n", "k.x"],
        verification_columns=["q.body"],
    )
    assert made.id == "id-3"
    assert made.prompt[0].content == "Three{} Two"
    assert made.gold == "5"
    assert made.source == "home"
    assert made.metadata == {"a": 1, "n": 3.0, "k.x": True}
    assert made.verification == {"q.body": ["Two", "Three"]}


def test_whole_floats_lose_their_point_and_others_keep_it() -> None:
    rows = [145.0, 2.5, 7, -3.0, 10**20]
    golds = [task({"prompt": "a", "gold_standard_solution": row}).gold for row in rows]
    assert golds == ["145", "2.5", "7", "-3", "100000000000000000000"]


def test_a_list_of_messages_is_a_prompt() -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert task({"prompt": messages}).prompt == (Message("system", "s"), Message("user", "u"))


@pytest.mark.parametrize(
    ("row", "source", "words"),
    [
        ({}, {}, "no column 'prompt'"),
        ({"prompt": None}, {}, "null"),
        ({"prompt": " "}, {}, "prompt is empty"),
        ({"prompt": []}, {}, "no message"),
        ({"prompt": ["x"]}, {}, "role and content"),
        ({"prompt": [{"role": "robot", "content": "x"}]}, {}, "role 'robot'"),
        ({"prompt": [{"role": "user", "content": 1}]}, {}, "isn't text"),
        ({"prompt": True}, {}, "neither text nor a number"),
        ({"prompt": "a\ud800"}, {}, "half a surrogate"),
        ({"prompt": "a", "problem_id": ""}, {}, "problem_id is empty"),
        ({"prompt": "a", "gold_standard_solution": float("nan")}, {}, "isn't JSON"),
        ({"prompt": "a", "metadata": "no dict"}, {}, "metadata: neither JSON"),
        ({"prompt": "a", "metadata": [1]}, {}, "not a dict"),
        ({"prompt": "a", "metadata": {"x": float("inf")}}, {}, "metadata: the number inf"),
        ({"a": "x"}, {"columns": {"prompt": "b"}}, "no column 'b'; the row has a"),
        ({"a": "x"}, {"columns": {"prompt": "{a} {b}"}}, "no column 'b'"),
        ({"a": None}, {"columns": {"prompt": "{a}"}}, "a is NoneType"),
        ({"a": "x"}, {"columns": {"prompt": {"column": "a", "after": "#"}}}, "holds no '#'"),
        ({"prompt": "a"}, {"metadata_columns": ["rate"]}, "no column 'rate'"),
        ({"prompt": "a", "t": {1}}, {"metadata_columns": ["t"]}, "set isn't plain JSON"),
    ],
)
def test_rows_that_do_not_fit_say_why(
    row: dict[str, Any], source: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        task(row, **source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"url": ""}, "names no file"),
        ({"url": []}, "names no file"),
        ({"columns": {"question": "q"}}, "prompt"),
        ({"columns": {"prompt": "{a"}}, "lone '{'"),
        ({"columns": {"prompt": {"template": "a}"}}}, "lone '}'"),
        ({"columns": {"prompt": {"column": "a", "const": 1}}}, "exactly one"),
        ({"columns": {"prompt": {}}}, "exactly one"),
        ({"sha256": "abc"}, "pattern"),
        ({"sha256": ["a" * 64, "b" * 64]}, "2 sha256 for 1 files"),
        ({"url": "hub://a/b"}, "needs revision"),
        ({"url": "hub://a/b", "revision": "main"}, "a branch name moves"),
        ({"revision": "a" * 40}, "belongs to hub"),
        ({"split": {"name": "dev"}}, "train"),
        ({"limit": 0}, "greater than or equal to 1"),
        ({"colums": {}}, "colums"),
    ],
)
def test_sources_that_make_no_sense_are_refused(source: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        DatasetSource.model_validate({"url": "x.jsonl", **source})


def test_the_split_of_a_key_is_fixed() -> None:
    held_out = [i for i in range(60) if in_split(f"task-{i}", "test", 0.1)]
    assert held_out == HELD_OUT
    assert all(in_split(f"task-{i}", "train", 0.1) != (i in held_out) for i in range(60))
    assert all(in_split(f"task-{i}", "all", 0.1) for i in range(60))


def test_a_larger_share_keeps_what_a_smaller_one_held_out() -> None:
    keys = [f"task-{i}" for i in range(500)]
    small = {key for key in keys if in_split(key, "test", 0.05)}
    large = {key for key in keys if in_split(key, "test", 0.5)}
    assert small < large
    assert 200 < len(large) < 300
