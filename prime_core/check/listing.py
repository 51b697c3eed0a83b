"""A jailed child: makes an environment, writes its tasks, and what it says of some of them.

Started as `python -m prime_core.check.listing REQUEST RESULT TASKS` by `prime_core.check.lab`.
TASKS gets one line of canonical JSON a task, which the parent hashes itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api import Task
from prime_core.api.datasets import task_json
from prime_core.hosting import values, wire
from prime_core.hosting.environment import HashRng

if TYPE_CHECKING:
    from prime_core.hub import Hub, RunContext


def spread(count: int, most: int) -> list[int]:
    """Up to `most` indices below `count`: the first, the last, and evenly between."""
    if count <= most or most < 2:
        return list(range(min(count, most)))
    return sorted({index * (count - 1) // (most - 1) for index in range(most)})


def make(request: dict[str, Any]) -> Any:
    """The environment that the request names, by the hub."""
    from prime_core.config.sections import EnvironmentChoice

    hub, context = workbench(request)
    return hub.make(
        "environment", EnvironmentChoice.model_validate(request["environment"]), context
    )


def workbench(request: dict[str, Any]) -> tuple[Hub, RunContext]:
    """The hub, and a context that gives sandboxes, as an environment host's does."""
    from prime_core.hub import Hub, RunContext
    from prime_core.hub.sandboxes import Sandboxes

    hub = Hub.discover(request["block"])
    sandboxes = Sandboxes(hub, None)
    return hub, RunContext(None, Path(request["cache_dir"]), offline=True, sandboxes=sandboxes)


def write_tasks(tasks: Sequence[Task], cap: int, target: Path) -> dict[str, Any]:
    """Write the tasks, an even sample where there are more than `cap`."""
    indices = spread(len(tasks), cap)
    bad = ""
    with target.open("wb") as file:
        for index in indices:
            try:
                file.write(task_json(tasks[index]) + b"\n")
            except ValueError as error:
                bad = bad or f"task {index}: {error}"
    return {"count": len(tasks), "listed": len(indices), "not_json": bad}


def digest_again(tasks: Sequence[Task], indices: Sequence[int]) -> str:
    """SHA-256 over the same tasks, read backwards and hashed forwards."""
    lines = [task_json(tasks[index]) for index in reversed(indices)]
    return hashlib.sha256(b"".join(line + b"\n" for line in reversed(lines))).hexdigest()


def describe_sample(environment: Any, tasks: Sequence[Task], request: dict[str, Any]) -> list[Any]:
    """Prompt, gold completion, wrong completions and writings of the sampled tasks."""
    found = []
    for index in spread(len(tasks), request["sample"]):
        task = tasks[index]
        one: dict[str, Any] = {"index": index, "id": task.id, "error": ""}
        found.append(one)
        try:
            one["prompt"] = wire.messages_json(environment.render(task, None), "rendered messages")
            for member in ("gold", "wrong", "writings"):
                call = getattr(environment, member, None)
                if not callable(call):
                    continue
                if member == "wrong":
                    one[member] = [
                        values.text(call(task, HashRng(seed)), member)
                        for seed in range(request["wrong_seeds"])
                    ]
                elif member == "writings":
                    one[member] = [values.text(each, member) for each in call(task)]
                else:
                    one[member] = values.text(call(task), member)
        except Exception as error:  # noqa: BLE001 - the environment is the package's code
            one["error"] = f"{type(error).__name__}: {error}"
    return found


def main(arguments: list[str]) -> None:
    """Answer one request; a failure is an answer with the phase it happened in."""
    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    target, tasks_path = Path(arguments[1]), Path(arguments[2])
    found: dict[str, Any] = {"phase": "making the environment", "error": ""}
    try:
        environment = make(request)
        found["phase"] = "listing its tasks"
        tasks = environment.tasks()
        found |= write_tasks(tasks, request["cap"], tasks_path)
        found["phase"] = "reading its info"
        found["info"] = wire.info_json(environment.info)
        found["licence_notes"] = [str(note) for note in getattr(environment, "notes", ())]
        found["members"] = [
            name for name in ("gold", "wrong", "writings", "reply")
            if callable(getattr(environment, name, None))
        ]  # fmt: skip
        found["phase"] = "asking for gold completions and prompts"
        found["sample"] = describe_sample(environment, tasks, request)
        if request["again"]:
            found["phase"] = "making it a second time"
            again = make(request)
            indices = spread(len(again.tasks()), request["cap"])
            found["again"] = digest_again(again.tasks(), indices)
            found["info_again"] = wire.info_json(again.info)
        found["phase"] = ""
    except BaseException as error:  # noqa: BLE001 - the boundary: SystemExit is an error here too
        from prime_core.hosting.serve import describe_error

        found["error"] = str(describe_error(error)["detail"])
    target.write_text(json.dumps(found), encoding="utf-8")
    if not found["error"] and request["again"] and "gold" in found["members"]:
        # Last: a verifier that hangs or crashes here must not take the listing with it.
        from prime_core.check.broken import cases

        beside(target).write_text(json.dumps(cases(environment, request)), encoding="utf-8")
    os._exit(0)


def beside(result: Path) -> Path:
    """Where the answers to broken tasks stand, for rule R05."""
    return result.with_suffix(".broken.json")


if __name__ == "__main__":
    main(sys.argv[1:])
