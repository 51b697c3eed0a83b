"""The environment: programming problems, own or of a data set, judged by the verifier `code`.

Made by the factory in `__init__`; lives in an environment host and keeps no state between calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version

from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import (
    Context,
    DatasetError,
    EnvironmentInfo,
    Instruction,
    Message,
    Rng,
    Task,
    with_instruction,
)
from prime_core.api.datasets import TaskTable, tasks_digest
from prime_env_code import sanity
from prime_env_code.dataset import read_tasks
from prime_env_code.params import CodeEnvParams
from prime_env_code.procedural import ProceduralTasks, wrong_sources


class CodeEnvironment:
    """Programming problems."""

    def __init__(self, params: CodeEnvParams, context: Context) -> None:
        self._params = params
        self.notes: tuple[str, ...] = ()
        self._tasks: Sequence[Task]
        if params.dataset is None:
            self._tasks = ProceduralTasks(params.problems, params.prompt_template)
        else:
            self._tasks = self._checked(*read_tasks(params, context), context)

    def _checked(self, tasks: list[Task], bad: dict[str, str], context: Context) -> TaskTable:
        findings = {task_id: [reason] for task_id, reason in bad.items()}
        if self._params.sanity != "off":
            findings |= {task.id: sanity.static_findings(task) for task in tasks}
        if self._params.sanity == "full":
            for task_id, found in self._full_findings(tasks, context).items():
                findings[task_id] = findings.get(task_id, []) + found
        self.notes = tuple(sanity.report_lines(findings))
        kept = [task for task in tasks if not findings.get(task.id)]
        if self.notes and self._params.on_bad_problem == "refuse":
            raise DatasetError(
                f"{len(self.notes)} problems aren't fit to be judged by; {self.notes[0]}",
                where="environment code",
                fix='repair them, or set on_bad_problem = "drop"',
            )
        if not kept:
            raise DatasetError(
                f"no problem is fit to be judged by; {self.notes[0]}",
                where="environment code",
                fix='check the schema, or set sanity = "off"',
            )
        return TaskTable(kept)

    def _full_findings(self, tasks: list[Task], context: Context) -> dict[str, list[str]]:
        box = context.sandbox()
        jail, rules = box.probe().policy_digest, sanity.rules_digest()
        name = f"{tasks_digest(tasks)[:32]}-{jail[:16]}-{rules[:16]}.json"
        path = context.cache_dir / "code-sanity" / name
        findings = sanity.remembered(path)
        if findings is None:
            verifier = CodeVerifier(CodeParams(), box)
            findings = {task.id: sanity.full_findings(task, verifier) for task in tasks}
            if not any(sanity.UNDECIDED in text for found in findings.values() for text in found):
                sanity.remember(path, findings)  # a jail that failed once says nothing for good
        return findings

    @cached_property
    def info(self) -> EnvironmentInfo:
        """A policy that doesn't look at the task solves none."""
        dataset = self._params.dataset
        return EnvironmentInfo(
            name="code",
            version=version("prime-env-code"),
            dataset_digest=tasks_digest(self._tasks),
            licence="Apache-2.0" if dataset is None else dataset.licence,
            needs=("sandbox:namespaces",),
        )

    @property
    def verifier(self) -> str:
        """The name of the verifier plugin; its parameters go into verifier = {use, with}."""
        return "code"

    def tasks(self) -> Sequence[Task]:
        """The problems, in the order of the seed or of the file."""
        return self._tasks

    def render(self, task: Task, budget: Instruction | None) -> Sequence[Message]:
        """The task's messages, the length budget's instruction in the message that it names."""
        messages = task.prompt
        if self._params.system_prompt:
            messages = (Message("system", self._params.system_prompt), *messages)
        return with_instruction(messages, budget)

    def gold(self, task: Task) -> str:
        """A completion that gives the reference solution.

        Raises:
            DatasetError: the task has none.
        """
        if task.gold is None:
            raise DatasetError(
                f"task {task.id!r} has no reference solution",
                where="environment code",
                fix="map columns.gold_standard_solution",
            )
        return task.gold if "```" in task.gold else sanity.fenced(task.gold)

    def wrong(self, task: Task, rng: Rng) -> str:
        """A wrong program of the family, a careless one, or no program at all."""
        sources = ["def solve(:\n    pass", "raise SystemExit(0)", "1 / 0"]
        if "family" in task.metadata:
            sources += 2 * wrong_sources(task)
        texts = [sanity.fenced(source) for source in sources]
        if task.gold is not None:
            unclosed = sanity.fenced(task.gold).rstrip().removesuffix("```")
            texts += ["The answer is easy to see.", f"<think>\n{unclosed}"]
        return texts[rng.below(len(texts))]
