"""The rows' invariants: each breach is named with its row and column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rollout_rows import row, rows, two_turns, unscored

from prime_core.api.errors import FormatError
from prime_core.store.schema import COLUMNS, RolloutRow, arrow_schema, check_rows

NAN, INF = float("nan"), float("inf")


def test_the_schema_is_the_documented_one() -> None:
    schema = arrow_schema()
    nullable = {field.name for field in schema if field.nullable}
    assert nullable == {"length_budget", "score", "reward"}
    assert [f"{field.name} {field.type}" for field in schema] == [
        "environment string",
        "task_id string",
        "group_id string",
        "sample int32",
        "step int32",
        "policy_version int32",
        "node string",
        "submission int32",
        "max_tokens int32",
        "prompt_tokens list<element: int32 not null>",
        "completion_tokens list<element: int32 not null>",
        "completion_mask list<element: bool not null>",
        "completion_logprobs list<element: float not null>",
        "finish_reason string",
        "length_budget int32",
        "sampling_seed int64",
        "temperature float",
        "score float",
        "score_status string",
        "reward float",
        "reward_parts map<string, float>",
        "proofs binary",
        "policy_digest binary",
        "turn_ends list<element: int32 not null>",
    ]
    assert tuple(schema.names) == COLUMNS


def test_whole_groups_of_all_kinds_are_right() -> None:
    check_rows(rows())
    empty = unscored(
        0,
        1,
        prompt_tokens=[],
        completion_tokens=[],
        completion_mask=[],
        completion_logprobs=[],
        turn_ends=[],
    )
    check_rows([replace(empty, sample=0), empty])


@pytest.mark.parametrize(
    ("column", "broken"),
    [
        ("environment", row(environment="")),
        ("task_id", row(task_id="x" * 5000)),
        ("node", row(node="Worker")),
        ("sample", row(sample=-1)),
        ("step", row(step=-1)),
        ("group_id", row(group_id="3-worker-0-2-00")),
        ("group_id", row(group_id="4-worker-0-2-0")),
        ("group_id", row(group_id="3-worker-0-2-x")),
        ("group_id", row(group_id="3-worker-0-2-²")),
        ("group_id", row(group_id="")),
        ("policy_version", row(policy_version=4)),
        ("max_tokens", row(max_tokens=0)),
        ("max_tokens", row(max_tokens=2)),
        ("length_budget", row(length_budget=0)),
        ("sampling_seed", row(sampling_seed=-1)),
        ("policy_digest", row(policy_digest=b"short")),
        ("finish_reason", row(finish_reason="cancelled")),
        ("temperature", row(temperature=NAN)),
        ("temperature", row(temperature=-1.0)),
        ("score_status", row(score_status="right")),
        ("score", row(score=None)),
        ("score", row(score=INF)),
        ("score", unscored(score=0.0)),
        ("reward", row(reward=None)),
        ("reward", row(reward=NAN)),
        ("reward", unscored(status="abstained", reward=0.0)),
        ("reward_parts", unscored(reward_parts={"task": 0.0})),
        ("reward_parts", row(reward_parts={"task": NAN})),
        ("reward_parts", row(reward_parts={f"p{i}": 0.0 for i in range(65)})),
        ("reward_parts", row(reward_parts={"\u00e9" * 129: 0.0})),
        ("completion_mask", row(completion_mask=[True, True])),
        ("completion_logprobs", row(completion_logprobs=[-1.0])),
        ("completion_logprobs", row(completion_logprobs=[-1.0, 0.1, 0.0])),
        ("completion_logprobs", row(completion_logprobs=[-1.0, NAN, 0.0])),
        ("completion_logprobs", row(completion_logprobs=[-1.0, -INF, 0.0])),
        ("completion_logprobs", two_turns(completion_logprobs=[-1.0, -1.0, -1.0, 0.0, -1.0])),
        ("completion_tokens", row(completion_tokens=[1, -2, 3])),
        ("prompt_tokens", row(prompt_tokens=[-1])),
        ("completion_tokens", row(prompt_tokens=[])),
        (
            "completion_mask",
            row(completion_mask=[False, True, True], completion_logprobs=[0.0] * 3),
        ),
        ("turn_ends", row(turn_ends=[])),
        ("turn_ends", row(turn_ends=[2])),
        ("turn_ends", two_turns(turn_ends=[5])),
        ("turn_ends", two_turns(turn_ends=[5, 2])),
        ("turn_ends", two_turns(turn_ends=[2, 4])),
    ],
)
def test_a_broken_row_is_named_with_row_and_column(column: str, broken: RolloutRow) -> None:
    with pytest.raises(FormatError) as caught:
        check_rows([broken, replace(broken, sample=1)])
    assert caught.value.where == f"row 0, {column}"


@pytest.mark.parametrize(
    ("where", "broken"),
    [
        ("row 1, step", [row(), row(0, 1, step=4, group_id="4-worker-0-2-0")]),
        ("row 1, node", [row(), row(0, 1, node="worker-1", group_id="3-worker-1-2-0")]),
        ("row 1, policy_version", [row(), row(0, 1, policy_version=2)]),
        ("row 1, policy_digest", [row(), row(0, 1, policy_digest=bytes(32))]),
        ("row 0, sample", [row(0, 1), row(0, 0)]),
        ("row 0, sample", [row(0, 0), row(0, 2)]),
        ("row 0, sample", [row(0, 0), row(0, 0)]),
        ("row 2, sample", [row(0, 0), row(0, 1), row(1, 0)]),
        ("row 2, group_id", [row(1, 0), row(1, 1), row(0, 0), row(0, 1)]),
        ("row 2, group_id", [row(0, 0), row(1, 0), row(0, 0), row(1, 0)]),
        ("row 1, task_id", [row(0, 0), row(0, 1, task_id="other")]),
        ("row 1, prompt_tokens", [row(0, 0), row(0, 1, prompt_tokens=[1])]),
        ("row 1, length_budget", [row(0, 0), row(0, 1, length_budget=5)]),
    ],
)
def test_rows_that_do_not_fit_together_are_named(where: str, broken: Sequence[RolloutRow]) -> None:
    with pytest.raises(FormatError) as caught:
        check_rows(broken)
    assert caught.value.where == where


def test_no_rows_are_no_submission() -> None:
    with pytest.raises(FormatError, match="no rows"):
        check_rows([])


def test_the_reference_page_lists_the_columns() -> None:
    page = Path(__file__).parents[2] / "docs/reference/rollout-format.md"
    table = page.read_text().partition("## Columns")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([a-z0-9<>, ]+\??) \|", table, re.MULTILINE)
    expected = []
    for field in arrow_schema():
        kind = str(field.type).replace("element: ", "").replace(" not null", "")
        expected.append((field.name, f"{kind}?" if field.nullable else kind))
    assert rows == expected
