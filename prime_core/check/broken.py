"""Asks a verifier about tasks whose data is missing, as a broken data set has them.

The jailed child `listing` calls it last, for rule R05.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prime_core.api import Task
from prime_core.check.bench import completion_of
from prime_core.check.listing import spread, workbench
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


def cases(environment: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Scores of gold completions, whole and without gold answer and verification data."""
    found: dict[str, Any] = {"error": "", "cases": []}
    try:
        judge = Judge(verifier_of(environment, request))
        tasks = environment.tasks()
        for index in spread(len(tasks), TASKS):
            task = tasks[index]
            text = environment.gold(task)
            broken = replace(task, gold=None, verification={})
            found["cases"].append(
                {
                    "id": task.id,
                    "whole": judged(judge, task, text),
                    "broken": judged(judge, broken, text),
                }
            )
    except Exception as error:  # noqa: BLE001 - the environment is the package's code
        found["error"] = str(describe_error(error)["detail"])
    return found
