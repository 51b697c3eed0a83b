"""A jailed child: asks a verifier about tasks whose data is missing, as a broken data set has them.

Started as `python -m prime_core.check.broken REQUEST RESULT` by rule R05, through the lab.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from prime_core.api import Task
from prime_core.check.bench import completion_of
from prime_core.check.listing import make, spread, workbench
from prime_core.hosting.judging import Judge
from prime_core.hosting.serve import describe_error

TASKS = 3


def verifier_of(environment: Any, request: dict[str, Any]) -> Any:
    """The verifier that judges the environment's tasks."""
    from prime_core.config.sections import EnvironmentChoice, PluginChoice

    choice = EnvironmentChoice.model_validate(request["environment"]).verifier
    own = environment.verifier
    if choice is None and isinstance(own, str):
        choice = PluginChoice(use=own)
    if choice is None:
        return own
    hub, context = workbench(request)
    return hub.make("verifier", choice, context)


def judged(judge: Judge, task: Task, text: str) -> dict[str, Any]:
    """The score as a host would send it; an exception is the status error, as in a host."""
    try:
        return judge.score(task, completion_of(text))
    except Exception as error:  # noqa: BLE001 - the verifier is the package's code
        return {"value": None, "status": "error", "detail": describe_error(error)["detail"]}


def main(arguments: list[str]) -> None:
    """Score gold completions of tasks, whole and without gold answer and verification data."""
    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    found: dict[str, Any] = {"error": "", "cases": []}
    try:
        environment = make(request)
        judge = Judge(verifier_of(environment, request))
        tasks = environment.tasks()
        for index in spread(len(tasks), TASKS):
            task = tasks[index]
            text = environment.gold(task)
            broken = replace(task, gold=None, verification={})
            found["cases"].append(
                {
                    "index": index,
                    "id": task.id,
                    "text": text,
                    "whole": judged(judge, task, text),
                    "broken": judged(judge, broken, text),
                }
            )
    except Exception as error:  # noqa: BLE001 - the environment is the package's code
        found["error"] = str(describe_error(error)["detail"])
    Path(arguments[1]).write_text(json.dumps(found), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
