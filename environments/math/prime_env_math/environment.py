"""The environment: tasks of a data set or of our own making, asked in one style.

Made by the factory in `__init__`; lives in an environment host and keeps no state between calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version

from prime_core.api import (
    Context,
    EnvironmentInfo,
    Instruction,
    Message,
    Rng,
    Task,
    with_instruction,
)
from prime_core.api.datasets import tasks_digest
from prime_env_math.loading import load
from prime_env_math.near_misses import near_miss
from prime_env_math.params import MathParams
from prime_env_math.procedural import ProceduralTasks, problem_of
from prime_env_math.procedural.tasks import SOURCE
from prime_env_math.prompts import answer_text, build_prompt


class MathEnvironment:
    """Problems with one answer each, judged by a named verifier.

    Attributes:
        notes: what was left out of the data, and why.
    """

    def __init__(self, params: MathParams, context: Context) -> None:
        self._params = params
        self.notes: tuple[str, ...] = ()
        self._licence = params.licence or "Apache-2.0"
        self._tasks: Sequence[Task]
        if params.source == "procedural":
            self._tasks = ProceduralTasks(params, self._asked)
        else:
            loaded = load(params, context)
            self._tasks = tuple(self._asked(task) for task in loaded.tasks)
            self.notes = loaded.notes
            self._licence = params.licence or loaded.licence

    def _asked(self, task: Task) -> Task:
        """The task with the prompt that the model sees, so that the digest covers it."""
        metadata = dict(task.metadata)
        problem = task.prompt
        if task.source == SOURCE:
            problem = (Message("user", str(metadata.pop("problem"))),)
        prompt = build_prompt(
            problem,
            style=self._params.style,
            instruction=self._params.instruction,
            system_prompt=self._params.system_prompt,
            examples=self._params.examples[: self._params.few_shot],
        )
        return replace(task, prompt=prompt, metadata=metadata)

    @cached_property
    def info(self) -> EnvironmentInfo:
        """The chance level is the share of the most frequent gold answer."""
        golds = Counter(task.gold for task in self._tasks)
        return EnvironmentInfo(
            name="math",
            version=version("prime-env-math"),
            dataset_digest=tasks_digest(self._tasks),
            licence=self._licence,
            chance_level=golds.most_common(1)[0][1] / len(self._tasks),
        )

    @property
    def verifier(self) -> str:
        """The name of the verifier plugin."""
        return self._params.verifier

    def tasks(self) -> Sequence[Task]:
        """The tasks, in the order of the data or of the seed."""
        return self._tasks

    def render(self, task: Task, budget: Instruction | None) -> Sequence[Message]:
        """The task's messages, a length budget's instruction in the message that it names."""
        return with_instruction(task.prompt, budget)

    def gold(self, task: Task) -> str:
        """The gold answer as a completion ends in this style."""
        assert task.gold is not None
        return answer_text(self._params.style, task.gold)

    def wrong(self, task: Task, rng: Rng) -> str:
        """A usual mistake where the problem is of our own making, else the gold answer changed."""
        assert task.gold is not None
        mistakes = problem_of(task.id).near if self._params.source == "procedural" else ()
        choice = rng.below(len(mistakes) + 1)
        answer = mistakes[choice] if choice < len(mistakes) else near_miss(task.gold, rng)
        return answer_text(self._params.style, answer)
