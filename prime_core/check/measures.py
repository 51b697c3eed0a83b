"""What the lab's experiments give: observations of imports, listings of tasks, views of a task.

Rules read them. Invariant: plain data, read strictly from files that hostile code may have written.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from prime_core.api import EnvironmentInfo, FormatError
from prime_core.check.plain_files import read_plain
from prime_core.hosting import values, wire

RESULT_LIMIT = 512 << 20  # bytes of a child's result that are read


def read_result(path: Path) -> dict[str, Any]:
    """A child's JSON result.

    Raises:
        FormatError: it left none, or not a JSON object.
    """
    try:
        return values.mapping(json.loads(read_left(path)), "result")
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"it left no readable result: {error}") from error


def read_left(path: Path) -> bytes:
    """The bytes of a file that a child left; never of what a link leads to, and never waiting.

    Raises:
        OSError: there is none.
        FormatError: it's no plain file, or too large.
    """
    return read_plain(path, RESULT_LIMIT, follow=False)


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task as the parent keeps it: what rules of data look at."""

    id: str
    prompt: str
    gold: str | None


@dataclass(frozen=True, slots=True)
class TaskView:
    """What an environment says of one task.

    Attributes:
        index: in the task list.
        prompt: contents of the rendered messages, joined.
        roles: of the rendered messages.
        gold: a completion that solves it; None where the environment has none.
        wrong: completions that don't.
        writings: more completions that solve it.
        error: what it raised when it was asked.
    """

    index: int
    id: str
    prompt: str
    roles: tuple[str, ...] = ()
    gold: str | None = None
    wrong: tuple[str, ...] = ()
    writings: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Listing:
    """The tasks of an environment, as one process listed them.

    Attributes:
        phase, error: where and why it ended early; "" where it didn't.
        count: tasks in all; `tasks` holds all of them, or an even sample.
        digest: SHA-256 over the listed tasks, as `tasks_digest` counts it.
        again, info_again: of a second load in the same process, where one was asked for.
        not_json: the first task that isn't plain JSON.
    """

    phase: str = ""
    error: str = ""
    count: int = 0
    digest: str = ""
    info: EnvironmentInfo | None = None
    tasks: tuple[ListedTask, ...] = ()
    sample: tuple[TaskView, ...] = ()
    members: tuple[str, ...] = ()
    again: str = ""
    info_again: EnvironmentInfo | None = None
    not_json: str = ""

    @property
    def whole(self) -> bool:
        """`tasks` holds every task."""
        return len(self.tasks) == self.count

    @cached_property
    def golds(self) -> Counter[str]:
        """How often each gold answer occurs among the listed tasks."""
        return Counter(task.gold for task in self.tasks if task.gold is not None)


def read_listing(result: Path, tasks: Path) -> Listing:
    """A listing from a child's files.

    Raises:
        FormatError: they aren't that.
    """
    found = read_result(result)
    error = values.text(found.get("error", ""), "error")
    phase = values.text(found.get("phase", ""), "phase")
    if "info" not in found or "sample" not in found:
        return Listing(phase, error or "it described nothing")
    lines = read_left(tasks).splitlines(keepends=True)
    again = found.get("info_again")
    return Listing(
        phase=phase,
        error=error,
        count=values.whole(found.get("count"), "count"),
        digest=hashlib.sha256(b"".join(lines)).hexdigest(),
        info=wire.read_info(found["info"]),
        tasks=tuple(listed_task(line) for line in lines),
        sample=values.sequence(found["sample"], "sample", _view),
        members=values.sequence(found.get("members", []), "members", values.text),
        again=values.text(found.get("again", ""), "again"),
        info_again=None if again is None else wire.read_info(again),
        not_json=values.text(found.get("not_json", ""), "not_json"),
    )


def listed_task(line: bytes) -> ListedTask:
    """A task from its canonical JSON.

    Raises:
        FormatError: it isn't that.
    """
    try:
        task = values.mapping(json.loads(line), "task")
        prompt = "\n".join(str(content) for _, content in task["prompt"])
        gold = task.get("gold")
        return ListedTask(str(task["id"]), prompt, None if gold is None else str(gold))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"a listed task can't be read: {error}") from error


def _view(value: object, what: str) -> TaskView:
    one = values.mapping(value, what)
    prompt = wire.read_messages(one.get("prompt", []), "prompt") if one.get("prompt") else ()
    gold = one.get("gold")
    return TaskView(
        index=values.whole(one.get("index"), "index"),
        id=values.text(one.get("id"), "id"),
        prompt="\n\n".join(message.content for message in prompt),
        roles=tuple(message.role for message in prompt),
        gold=None if gold is None else values.text(gold, "gold"),
        wrong=values.sequence(one.get("wrong", []), "wrong", values.text),
        writings=values.sequence(one.get("writings", []), "writings", values.text),
        error=values.text(one.get("error", ""), "error"),
    )


@dataclass(frozen=True)
class Observation:
    """What importing and registering a distribution did.

    Attributes:
        ended: how the process ended badly; "" where it answered to the end.
        at: what it was doing then.
        modules: by name: error, cpu_s, modules, events, changed (see `observe`).
        plugins: by label: phase, error, fix, parameters.
    """

    ended: str = ""
    at: str = ""
    modules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_observation(result: Path, ended: str) -> Observation:
    """An observation from a child's file.

    Args:
        ended: how the child ended badly; "" where it didn't.

    Raises:
        FormatError: it isn't one.
    """
    found = read_result(result)
    at = values.text(found.get("at"), "at")
    modules = values.mapping(found.get("modules"), "modules")
    plugins = values.mapping(found.get("plugins"), "plugins")
    return Observation(
        ended or ("it ended the process" if at else ""),
        at,
        {name: _seen_module(seen, name) for name, seen in modules.items()},
        {label: _seen_plugin(seen, label) for label, seen in plugins.items()},
    )


def _seen_module(value: object, what: str) -> dict[str, Any]:
    seen = values.mapping(value, what)
    events = values.mapping(seen.get("events"), "events")
    return {
        "error": values.text(seen.get("error"), "error"),
        "cpu_s": values.number(seen.get("cpu_s"), "cpu_s"),
        "modules": values.sequence(seen.get("modules"), "modules", values.text),
        "events": {sort: values.sequence(each, sort, values.text) for sort, each in events.items()},
        "changed": values.sequence(seen.get("changed"), "changed", values.text),
    }


def _seen_plugin(value: object, what: str) -> dict[str, Any]:
    seen = values.mapping(value, what)
    for name in ("error", "phase", "fix"):
        values.text(seen.get(name, ""), name)
    if seen.get("parameters") is not None:
        values.mapping(seen["parameters"], "parameters")
    return seen
