"""The bytes between a pool and its hosts: what passes, what is refused, whatever arrives."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api import Completion, FormatError, Message, Reward, Score, ScoredRollout, Task
from prime_core.hosting import wire
from prime_core.hosting.protocol import MAX_MESSAGE, Frames, decode, encode

QUICK = settings(deadline=None, max_examples=50)
TEXT = st.text(st.characters(codec=None, exclude_categories=()))  # lone surrogates included
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip
OBJECT = st.dictionaries(TEXT, JSON, max_size=4)


@QUICK
@given(st.lists(OBJECT, max_size=5), st.data())
def test_messages_survive_any_cut_of_the_stream(messages: list[Any], data: st.DataObject) -> None:
    stream = b"".join(encode(message) for message in messages)
    frames, found, at = Frames(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        found += frames.feed(stream[at : at + size])
        at += size
    assert found == messages


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_give_messages_or_a_format_error(data: bytes) -> None:
    try:
        for message in Frames().feed(data):
            assert isinstance(message, dict)
    except FormatError:
        pass


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, object(), {1, 2}, 10**5000, b"bytes"], ids=range(6)
)
def test_what_is_not_json_is_not_sent(value: object) -> None:
    with pytest.raises(FormatError):
        encode({"value": value})


BODIES = [
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b"[1]",
    b"1",
    b"",
    b"{",
    b"\xff",
    b'{"a": ' + b"1" * 5000 + b"}",
    b'{"a": ' + b"[" * 100_000,
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_bodies_that_are_not_messages_are_refused(body: bytes) -> None:
    with pytest.raises(FormatError):
        decode(body)


def test_a_length_above_the_limit_is_refused_before_its_body() -> None:
    with pytest.raises(FormatError, match="limit"):
        Frames().feed((MAX_MESSAGE + 1).to_bytes(4, "big"))
    with pytest.raises(FormatError, match="limit"):
        encode({"a": "x" * MAX_MESSAGE})


def crossed(value: Any) -> Any:
    return decode(encode({"value": value})[4:])["value"]


@QUICK
@given(TEXT, TEXT, st.none() | TEXT, OBJECT, OBJECT)
def test_tasks_cross_unchanged(
    name: str, text: str, gold: str | None, verification: Any, metadata: Any
) -> None:
    task = Task(name, (Message("user", text),), gold, verification, metadata, "kind", "source")
    assert wire.read_task(crossed(wire.task_json(task))) == task


@QUICK
@given(TEXT, st.integers(0, 10**6), st.floats(0, 1), OBJECT)
def test_completions_and_scores_cross_unchanged(
    text: str, count: int, value: float, evidence: Any
) -> None:
    completion = Completion(text, (Message("assistant", text),), "length", count)
    score = Score(value, parts={"part": value}, evidence=evidence)
    assert wire.read_score(crossed(wire.score_json(score)), (0.0, 1.0)) == score
    rollout = ScoredRollout(completion, score)
    assert wire.read_rollout(crossed(wire.rollout_json(rollout))) == rollout


@QUICK
@given(JSON)
def test_whatever_a_host_sends_reads_as_a_value_or_a_format_error(value: Any) -> None:
    readers = (
        wire.read_task, wire.read_completion, wire.read_score, wire.read_info,
        lambda found: wire.read_reward(found, "reward"), wire.read_instruction, wire.read_reply,
    )  # fmt: skip
    for read in readers:
        try:
            read(value)
        except FormatError:
            continue


def test_rewards_cross_as_floats() -> None:
    found = wire.read_reward(crossed(wire.reward_json(Reward(1, {"task": True}))), "reward")
    assert found == Reward(1.0, {"task": 1.0})
    assert isinstance(found.total, float)
    assert json.dumps(found.total) == "1.0"
