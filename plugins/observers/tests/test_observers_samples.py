"""Finished groups become lines of bounded files, whatever happened to the process before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prime_observers import samples
from prime_observers.samples import SampleFiles, as_line

from prime_core.api import (
    Completion,
    Message,
    Reward,
    RewardedGroup,
    Score,
    ScoredGroup,
    ScoredRollout,
    Task,
)


def group(step: int = 3, k: int = 0, text: str = "12") -> RewardedGroup:
    turns = (Message("assistant", "11"), Message("user", "again"), Message("assistant", text))
    rollouts = (
        ScoredRollout(Completion(text, turns, "stop", 7), Score(0.5)),
        ScoredRollout(Completion("", (), "length", 9), Score(0.0, "invalid_output")),
    )
    task = Task("addition:7+5", (Message("user", "7+5="),))
    rewards = (Reward(0.4, {"task": 0.5, "length": -0.1}), Reward(-0.2, {"task": 0.0}))
    scored = ScoredGroup(task, rollouts, length_budget=4, step=step)
    return RewardedGroup(f"{step}-worker-0-0-{k}", "arithmetic", scored, rewards)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_says_everything_about_a_group() -> None:
    assert json.loads(as_line(group())) == {
        "group": "3-worker-0-0-0",
        "step": 3,
        "environment": "arithmetic",
        "task": "addition:7+5",
        "prompt": "7+5=",
        "length_budget": 4,
        "rollouts": [
            {
                "completion": "12",
                "turns": [
                    {"role": "assistant", "content": "11"},
                    {"role": "user", "content": "again"},
                    {"role": "assistant", "content": "12"},
                ],
                "finish_reason": "stop",
                "length": 7,
                "status": "scored",
                "score": 0.5,
                "reward": 0.4,
                "reward_parts": {"task": 0.5, "length": -0.1},
            },
            {
                "completion": "",
                "turns": [],
                "finish_reason": "length",
                "length": 9,
                "status": "invalid_output",
                "score": 0.0,
                "reward": -0.2,
                "reward_parts": {"task": 0.0},
            },
        ],
    }


@pytest.mark.parametrize("text", ["a\nb\u2028c", "\ud800", "日本", "\x1b[2J\x9b2J"])
def test_any_text_stays_one_printable_line(text: str) -> None:
    line = as_line(group(text=text))
    assert line.endswith(b"\n")
    assert all(32 <= byte < 127 for byte in line[:-1])
    assert json.loads(line)["rollouts"][0]["completion"] == text


def test_the_hooks_write_below_the_run_directory_when_a_group_finishes(tmp_path: Path) -> None:
    samples.prime_run_started({"run": {"dir": str(tmp_path)}})
    assert list(tmp_path.iterdir()) == [], "a process that sees no group makes no folder"
    samples.prime_group_finished(group(k=0))
    samples.prime_group_finished(group(k=1))
    samples.prime_group_finished(group(step=4))
    assert [told["group"] for told in read(tmp_path / "samples" / "000003.jsonl")] == [
        "3-worker-0-0-0",
        "3-worker-0-0-1",
    ]
    assert len(read(tmp_path / "samples" / "000004.jsonl")) == 1


def test_a_file_is_bounded_and_says_so_once(tmp_path: Path) -> None:
    limit = 2 * len(as_line(group())) + 10
    for _ in range(3):  # a restarted process leaves a full file alone
        files = SampleFiles(tmp_path / "s", max_file_bytes=limit)
        for k in range(2):
            files.append(group(k=k))
    found = read(files.path(3))
    assert [told.get("group") for told in found] == ["3-worker-0-0-0", "3-worker-0-0-1", None]
    assert found[-1] == {"full_at_bytes": limit}


def test_a_line_cut_off_by_a_kill_is_removed(tmp_path: Path) -> None:
    files = SampleFiles(tmp_path / "s")
    files.append(group(k=0))
    with files.path(3).open("ab") as stream:
        stream.write(as_line(group(k=1))[:40])
    SampleFiles(tmp_path / "s").append(group(k=2))
    assert [told["group"] for told in read(files.path(3))] == ["3-worker-0-0-0", "3-worker-0-0-2"]


def test_only_the_newest_steps_are_kept(tmp_path: Path) -> None:
    files = SampleFiles(tmp_path / "s", kept_steps=2)
    for step in (7, 8, 9, 10):
        files.append(group(step=step))
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == [
        "000009.jsonl",
        "000010.jsonl",
    ]
