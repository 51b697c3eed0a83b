"""Observer `samples`: every finished group, as text, in `<run>/samples/<step>.jsonl`.

Works in the intake's process, where groups finish; in the others it only hears where the run lies.
Invariant: what the files take on the disk is bounded, whatever the run does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prime_core.api import Message, RewardedGroup, hookimpl

FOLDER = "samples"
MAX_FILE_BYTES = 16 << 20  # of one step; 16 MiB are some 500 groups of 16 x 2,000 characters
KEPT_STEPS = 64  # newest; with the line above: at most 1 GiB a run


def as_line(group: RewardedGroup) -> bytes:
    """One line of JSON: task, prompt, and every scored rollout with its reward."""
    scored = group.group
    rollouts = [
        {
            "completion": rollout.completion.text,
            "turns": [_message(one) for one in rollout.completion.messages],
            "finish_reason": rollout.completion.finish_reason,
            "length": rollout.completion.token_count,
            "status": rollout.score.status,
            "score": rollout.score.value,
            "reward": reward.total,
            "reward_parts": dict(reward.parts),
        }
        for rollout, reward in zip(scored.rollouts, group.rewards, strict=True)
    ]
    told = {
        "group": group.id,
        "step": scored.step,
        "environment": group.environment,
        "task": scored.task.id,
        "prompt": "".join(message.content for message in scored.task.prompt),
        "length_budget": scored.length_budget,
        "rollouts": rollouts,
    }
    # ASCII: a model may say control characters and half surrogates, and somebody will `cat` this
    return json.dumps(told).encode("ascii") + b"\n"


def _message(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


class SampleFiles:
    """The files of one run.

    Args:
        folder: made when the first group is written.
        max_file_bytes: a group that would make a file larger is left out, and a last line says so.
        kept_steps: files that are kept, the newest.
    """

    def __init__(
        self, folder: Path, *, max_file_bytes: int = MAX_FILE_BYTES, kept_steps: int = KEPT_STEPS
    ) -> None:
        self._folder = folder
        self._max_file_bytes, self._kept_steps = max_file_bytes, kept_steps
        self._sizes: dict[int, int] = {}
        self._full: set[int] = set()

    def append(self, group: RewardedGroup) -> None:
        """Add a finished group to its step's file.

        Raises:
            OSError: the file can't be written.
        """
        step = group.group.step
        if step not in self._sizes:
            self._open(step)
        if step in self._full:
            return
        line = as_line(group)
        if self._sizes[step] + len(line) > self._max_file_bytes:
            self._full.add(step)
            line = json.dumps({"full_at_bytes": self._max_file_bytes}).encode() + b"\n"
        with self.path(step).open("ab", buffering=0) as stream:
            stream.write(line)
        self._sizes[step] += len(line)

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self._folder / f"{step:06d}.jsonl"

    def _open(self, step: int) -> None:
        """Take up a step's file where a killed predecessor left it; drop the oldest files."""
        self._folder.mkdir(exist_ok=True)
        path = self.path(step)
        lines = path.read_bytes() if path.exists() else b""
        whole = lines.rfind(b"\n") + 1
        if whole < len(lines):
            os.truncate(path, whole)
        if lines[:whole].rpartition(b"\n{")[2].startswith(b'"full_at_bytes"'):
            self._full.add(step)
        self._sizes[step] = whole
        path.touch()
        for old in sorted(self._folder.glob("*.jsonl"))[: -self._kept_steps]:
            old.unlink()


_runs: dict[str, SampleFiles] = {}  # at most one: hooks are functions, so the run is kept here


@hookimpl
def prime_run_started(config: Mapping[str, Any]) -> None:
    """Note where the run lies."""
    _runs.clear()
    _runs["run"] = SampleFiles(Path(config["run"]["dir"]) / FOLDER)


@hookimpl
def prime_group_finished(group: RewardedGroup) -> None:
    """Write the group."""
    _runs["run"].append(group)
