"""The environment: tasks of a file, with system prompt and suffix, judged by a named verifier.

Made by the factory in `__init__`; lives in an environment host and keeps no state between calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version

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
from prime_core.api.datasets import TaskTable, load_tasks
from prime_env_jsonl.params import JsonlParams

WHOLE_NUMBER = re.compile(r"(-?[0-9]{1,1000})(\.[0-9]+)?")


class JsonlEnvironment:
    """Tasks from files, in their order."""

    def __init__(self, params: JsonlParams, context: Context) -> None:
        self._params = params
        loaded = load_tasks(params, context)
        # The prompt that the model sees is part of the task, so that the digest covers it.
        self._tasks = TaskTable(
            [replace(task, prompt=self._prompt(task)) for task in loaded],
            loaded.files,
            loaded.bad_rows,
        )

    def _prompt(self, task: Task) -> tuple[Message, ...]:
        messages = task.prompt
        if self._params.prompt_suffix:
            messages = with_instruction(messages, Instruction(self._params.prompt_suffix))
        if not self._params.system_prompt:
            return messages
        if messages[0].role != "system":
            return (Message("system", self._params.system_prompt), *messages)
        own = f"{self._params.system_prompt}\n\n{messages[0].content}"
        return (Message("system", own), *messages[1:])

    @cached_property
    def info(self) -> EnvironmentInfo:
        """The chance level is the share of the most frequent gold answer."""
        golds = Counter(task.gold for task in self._tasks if task.gold is not None)
        low, high = self._params.score_range
        share = golds.most_common(1)[0][1] / len(self._tasks) if golds else 0.0
        return EnvironmentInfo(
            name="jsonl",
            version=version("prime-env-jsonl"),
            dataset_digest=self._tasks.digest,
            licence=self._params.licence,
            score_range=(low, high),
            chance_level=low + (high - low) * share,
        )

    @property
    def verifier(self) -> str:
        """The name of the verifier plugin."""
        return self._params.verifier

    def tasks(self) -> Sequence[Task]:
        """The tasks, in the order of the file."""
        return self._tasks

    def render(self, task: Task, budget: Instruction | None) -> Sequence[Message]:
        """The task's messages, the length budget's instruction in the message that it names."""
        return with_instruction(task.prompt, budget)

    def gold(self, task: Task) -> str:
        """The gold answer as a completion would end.

        Raises:
            DatasetError: the task has none.
        """
        return self._params.answer_format.replace("{gold}", self._gold_text(task))

    def wrong(self, task: Task, rng: Rng) -> str:
        """Another number where the gold answer is one, another text where it isn't."""
        gold = self._gold_text(task)
        number = WHOLE_NUMBER.fullmatch(gold.replace(",", ""))
        other = f"not {gold}"
        if number is not None:
            other = f"{int(number[1]) + 1 + rng.below(9)}{number[2] or ''}"
        return self._params.answer_format.replace("{gold}", other)

    def _gold_text(self, task: Task) -> str:
        if task.gold is None:
            raise DatasetError(
                f"task {task.id!r} has no gold answer",
                where=f"environment jsonl, {', '.join(self._params.urls)}",
                fix="map columns.gold_standard_solution",
            )
        return task.gold
