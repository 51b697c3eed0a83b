from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from prime_core.store.trace import Trace, merge_trace, read_trace


def test_spans_nest_and_carry_arguments(tmp_path: Path) -> None:
    trace = Trace(tmp_path, "trainer")
    with trace.span("train", step=3) as details:
        with trace.span("optimizer"):
            pass
        details["tokens"] = 12
    trace.close()
    inner, outer = read_trace(tmp_path)["trainer"]
    assert (inner["name"], outer["name"]) == ("optimizer", "train")
    assert outer["args"] == {"step": 3, "tokens": 12}
    assert outer["ts"] <= inner["ts"]
    assert outer["dur"] >= inner["dur"]


def test_a_span_that_raises_is_recorded_with_the_error(tmp_path: Path) -> None:
    trace = Trace(tmp_path, "worker-0")
    with pytest.raises(ValueError, match="no"), trace.span("generate"):
        raise ValueError("no")
    assert read_trace(tmp_path)["worker-0"][0]["args"] == {"error": "ValueError"}


def test_the_merged_trace_is_in_the_chrome_format(tmp_path: Path) -> None:
    for process in ("worker-0", "trainer"):
        trace = Trace(tmp_path, process)
        with trace.span("wait", lane="requests", loss=math.nan):
            trace.instant("cancel", group="0-worker-0-0-1")
        trace.close()
    events = json.loads(merge_trace(tmp_path).read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1: "trainer", 2: "worker-0"}
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(lanes.values()) == {"main", "requests"}
    spans = [e for e in events if e["ph"] == "X"]
    assert len(spans) == 2
    for event in spans:
        assert event["name"] == "wait"
        assert event["dur"] >= 0
        assert event["ts"] > 1e15  # microseconds since the epoch
        assert lanes[event["pid"], event["tid"]] == "requests"
    instants = [e for e in events if e["ph"] == "i"]
    assert all(e["s"] == "t" and "dur" not in e for e in instants)
    assert merge_trace(tmp_path).name == "trace.json"  # again, over the old one


def test_merging_a_run_without_traces_gives_an_empty_trace(tmp_path: Path) -> None:
    assert json.loads(merge_trace(tmp_path).read_text())["traceEvents"] == []
