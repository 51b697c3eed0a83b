"""Files of completions: what a row may be, and what is said of one that can't be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prime_core.api import DatasetError
from prime_core.evaluation.completions import AnyRow, BadRow, CompletionFile, Row


def read(path: Path, **columns: str) -> list[AnyRow]:
    return list(CompletionFile(path, columns).rows())


def lines(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


TURNS = [
    {"role": "assistant", "content": "7?", "reasoning": "hm"},
    {"role": "user", "content": "no"},
    {"role": "assistant", "content": "8"},
]


def test_rows_name_tasks_and_say_something(tmp_path: Path) -> None:
    found = read(
        lines(
            tmp_path,
            {"task": "a", "completion": "1", "id": 17, "other": None},
            "",
            {"index": 3, "messages": TURNS, "finish_reason": "length", "token_count": 9},
            {"task": "b", "completion": "\ud800"},
        )
    )
    first, second, third = found
    assert isinstance(first, Row)
    assert (first.number, first.id, first.task, first.index) == (0, "17", "a", None)
    assert first.completion.messages[0].content == first.completion.text == "1"
    assert isinstance(second, Row)
    assert (second.number, second.index, second.completion.text) == (1, 3, "8")
    assert len(second.completion.messages) == 3
    assert (second.completion.finish_reason, second.completion.token_count) == ("length", 9)
    assert isinstance(third, Row)
    assert third.completion.text == "\ud800"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "isn't JSON"),
        ("[1]", "a list, not an object"),
        ({"completion": "1"}, "names no task"),
        ({"task": 5, "completion": "1"}, "task is a int"),
        ({"index": True, "completion": "1"}, "index is a bool"),
        ({"index": 1}, "neither completion"),
        ({"index": 1, "completion": 2}, "completion is a int"),
        ({"index": 1, "messages": TURNS[1:]}, "leave the prompt out"),
        ({"index": 1, "messages": [{"role": "robot", "content": ""}]}, "role"),
        ({"index": 1, "messages": "["}, "messages isn't JSON"),
        ({"index": 1, "completion": "1", "finish_reason": "why"}, "finish_reason is 'why'"),
        ({"index": 1, "completion": "1", "token_count": -1}, "token_count is -1"),
    ],
)
def test_a_row_that_cant_be_used_says_why(tmp_path: Path, row: Any, reason: str) -> None:
    good = {"index": 0, "completion": "1"}
    found = read(lines(tmp_path, row, good))
    assert isinstance(found[0], BadRow)
    assert reason in found[0].reason
    assert isinstance(found[1], Row)


def test_parquet_reads_alike_and_columns_may_have_other_names(tmp_path: Path) -> None:
    rows = [
        {"problem_id": "a", "said": "1", "messages": json.dumps(TURNS)},
        {"problem_id": "b", "said": "2", "messages": None},
    ]
    path = tmp_path / "c.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    names = {"task": "problem_id", "completion": "said"}
    found = read(path, **names)
    assert found == read(lines(tmp_path, *rows), **names)
    assert [row.task for row in found if isinstance(row, Row)] == ["a", "b"]
    assert [row.completion.text for row in found if isinstance(row, Row)] == ["1", "2"]


def test_files_that_cant_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="can't be read"):
        read(tmp_path / "absent.jsonl")
    with pytest.raises(DatasetError, match="no field tusk"):
        read(lines(tmp_path, {}), tusk="x")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and nonsense")
    with pytest.raises(DatasetError, match="Parquet"):
        read(broken)
