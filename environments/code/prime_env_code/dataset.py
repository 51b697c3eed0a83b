"""A data set's rows as tasks: verification data in the verifier's own schema, prompts that name the
interface.

Called by the environment where a data set is configured. Packed private tests are unpacked here,
once, and a row that no program could be judged by is left out or refused, with its id.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from prime_verifier_code import Problem, ProblemError, read_problem

from prime_core.api import Context, DatasetError, Message, Task
from prime_core.api.datasets import load_tasks
from prime_env_code.params import CodeDataset, CodeEnvParams

READ_AS = {"mbpp_full": "mbpp"}  # schemas of the verifier that have another name there


def read_tasks(params: CodeEnvParams, context: Context) -> tuple[list[Task], dict[str, str]]:
    """The tasks, and for each row that can't be judged its id and the reason.

    Raises:
        DatasetError: the file can't be read, or rows are bad and `on_bad_problem` is refuse.
    """
    source = params.dataset
    assert source is not None
    tasks: list[Task] = []
    bad: dict[str, str] = {}
    for task in load_tasks(source, context):
        try:
            tasks.append(_task(task, source, params))
        except ProblemError as error:
            bad[task.id] = str(error)
    if bad and params.on_bad_problem == "refuse":
        task_id, reason = next(iter(bad.items()))
        raise DatasetError(
            f"{len(bad)} problems can't be judged; {task_id}: {reason}",
            where=", ".join(source.urls),
            fix='repair them, or set on_bad_problem = "drop"',
        )
    if not tasks:
        raise DatasetError(
            "no problem is left",
            where=", ".join(source.urls),
            fix="check the schema: " + next(iter(bad.values()), "there are no rows"),
        )
    return tasks, bad


def _task(task: Task, source: CodeDataset, params: CodeEnvParams) -> Task:
    schema = READ_AS.get(source.schema_name, source.schema_name)
    problem = read_problem({**task.verification, "schema": schema})
    verification = problem.model_dump(mode="json", exclude_unset=True)
    asked = _question(task, source, problem, params)
    *before, last = task.prompt
    prompt = (*before, Message(last.role, params.prompt_template.replace("{problem}", asked)))
    return replace(
        task,
        prompt=prompt,
        gold=_gold(task),
        verification=verification,
        metadata={**task.metadata, "kind": problem.type},
        task_type=task.task_type or "verifiable_code",
    )


def _question(task: Task, source: CodeDataset, problem: Problem, params: CodeEnvParams) -> str:
    text = task.prompt[-1].content.strip()
    if source.schema_name == "humaneval":
        return (
            f"Complete the function `{problem.fn_name}`; give the whole function.\n\n"
            f"```python\n{text}\n```"
        )
    if source.schema_name in ("mbpp", "mbpp_full"):
        shown = _first_assertions(problem, params.shown_assertions)
        return f"{text}\n\nThe function is called `{problem.fn_name}`." + (
            f" It must pass, among others:\n{shown}" if shown else ""
        )
    starter = str(task.metadata.get("starter_code") or "").rstrip()
    if starter:
        return f"{text}\n\nStart from this code:\n```python\n{starter}\n```"
    if problem.type == "function":
        return f"{text}\n\nWrite a function `{problem.fn_name}`."
    return f"{text}\n\nRead from standard input and write to standard output." if (
        problem.type == "stdin"
    ) else text  # fmt: skip


def _first_assertions(problem: Problem, count: int) -> str:
    lines = [line for line in problem.assertions.splitlines() if line.startswith("assert")]
    return "\n".join(lines[:count])


def _gold(task: Task) -> str | None:
    """APPS keeps a JSON list of solutions; any other gold answer is one program."""
    gold = task.gold
    if gold is None or not gold.lstrip().startswith("["):
        return gold
    try:
        solutions: Any = json.loads(gold)
    except ValueError:
        return gold
    if isinstance(solutions, list) and solutions and isinstance(solutions[0], str):
        return solutions[0]
    return gold
