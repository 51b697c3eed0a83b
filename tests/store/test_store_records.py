"""Records: what is written reads back, what breaks a bound is a FormatError."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_rows import dispatch

from prime_core.api.errors import FormatError
from prime_core.store.records import (
    Closed,
    ClosedGroup,
    Dispatch,
    GroupReceipt,
    Lock,
    LockedPlugin,
    Receipt,
    Record,
    TaskList,
)

HEX = "0f" * 32
RECORDS: list[Record] = [
    dispatch(),
    Receipt("r", 3, "worker-0", 2, HEX, "accepted", "", (GroupReceipt("g", "signal", "", 4),)),
    Receipt("r", 3, "worker-0", 2, HEX, "rejected", "seeds: not the assigned", ()),
    Closed("r", 3, (ClosedGroup("g", "steps/000003/submissions/a-00000.parquet", HEX),), 1),
    TaskList.build("sums", HEX, 10, [1, 3, 7], ["a", "b", "ü"], (0, 1)),
    Lock(
        "r",
        (LockedPlugin("loss", "grpo", "prime-core", "0.1.0"),),
        {"sums": {"prime-env-sums": "1.0"}},
        {"sums": HEX},
        "transformers/5",
        {"run": 2**62},
        HEX,
        HEX,
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_reads_back_and_encodes_to_the_same_bytes(record: Record) -> None:
    data = record.to_json()
    again = type(record).from_json(data)
    assert again == record
    assert again.to_json() == data


OPTIONAL = {"publications"}  # locks of runs without published plugins needn't have it


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_missing_and_unknown_fields_are_refused(record: Record) -> None:
    payload = json.loads(record.to_json())
    for key in payload.keys() - OPTIONAL:
        short = {name: value for name, value in payload.items() if name != key}
        with pytest.raises(FormatError, match=key):
            type(record).from_json(json.dumps(short).encode())
    with pytest.raises(FormatError, match="odd"):
        type(record).from_json(json.dumps({**payload, "odd": 1}).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step", -1),
        ("step", 2.0),
        ("step", True),
        ("step", "3"),
        ("step", 2**31),
        ("node", ""),
        ("node", "Worker"),
        ("node", "worker\n"),
        ("node", "../worker"),
        ("node", "a" * 65),
        ("policy_digest", "0F" * 32),
        ("policy_digest", "0f" * 31),
        ("groups", 0),
        ("group_size", 1),
        ("group_size", 65536),
    ],
)
def test_a_dispatch_out_of_bounds_is_refused(field: str, value: object) -> None:
    payload = {**json.loads(dispatch().to_json()), field: value}
    with pytest.raises(FormatError) as caught:
        Dispatch.from_json(json.dumps(payload).encode(), where="steps/x.json")
    assert caught.value.where == "steps/x.json"


def test_contradictions_are_refused() -> None:
    task_list = json.loads(RECORDS[4].to_json())
    for field, value in (
        ("indices", [1, 3]),
        ("indices", [3, 1, 7]),
        ("indices", [1, 3, 10]),
        ("task_ids", ["a", "b", "c"]),
        ("score_range", [0.0, 2.0]),
    ):
        with pytest.raises(FormatError):
            TaskList.from_json(json.dumps({**task_list, field: value}).encode())
    receipt = json.loads(RECORDS[1].to_json())
    with pytest.raises(FormatError, match="late"):
        Receipt.from_json(json.dumps({**receipt, "decision": "late"}).encode())
    closed = json.loads(RECORDS[3].to_json())
    with pytest.raises(FormatError, match="twice"):
        Closed.from_json(json.dumps({**closed, "groups": closed["groups"] * 2}).encode())


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_record_or_a_format_error(data: bytes) -> None:
    for kind in (Dispatch, Receipt, Closed, TaskList, Lock):
        with pytest.raises(FormatError):
            kind.from_json(data)


@given(st.data())
def test_a_damaged_record_is_a_record_or_a_format_error(data: st.DataObject) -> None:
    record = data.draw(st.sampled_from(RECORDS))
    encoded = bytearray(record.to_json())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = type(record).from_json(bytes(encoded))
    except FormatError:
        return
    assert type(record).from_json(found.to_json()) == found


@pytest.mark.parametrize("task_id", ["", "x" * 4097])
def test_an_id_that_no_list_can_hold_is_a_format_error(task_id: str) -> None:
    with pytest.raises(FormatError, match=r"environment sums: .*task_ids.0"):
        TaskList.build("sums", HEX, 2, [0], [task_id], (0, 1))
