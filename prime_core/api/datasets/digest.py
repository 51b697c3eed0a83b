"""The digest of a list of tasks: what a run locks and a later run is held to.

Called by `load_tasks` and by environments that make their own tasks; equal tasks in equal order
give equal digests on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from prime_core.api.types import Task


def task_json(task: Task) -> bytes:
    """One task as canonical JSON: sorted keys, no spaces, ASCII only.

    Raises:
        ValueError: verification or metadata holds something that isn't plain finite JSON.
    """
    fields = {
        "id": task.id,
        "prompt": [[message.role, message.content] for message in task.prompt],
        "gold": task.gold,
        "verification": dict(task.verification),
        "metadata": dict(task.metadata),
        "task_type": task.task_type,
        "source": task.source,
    }
    try:
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except TypeError as error:
        raise ValueError(f"task {task.id!r} isn't plain JSON: {error}") from error
    return text.encode("ascii")


def tasks_digest(tasks: Iterable[Task]) -> str:
    """SHA-256 (lower-case hex) over the tasks' canonical JSON, a line feed after each, in order."""
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(task_json(task))
        digest.update(b"\n")
    return digest.hexdigest()
