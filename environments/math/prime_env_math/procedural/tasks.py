"""The list of procedural tasks: templates in turns, each in its own seeded order.

Made by the environment. Invariant: a task is a pure function of its id, its place depends on the
seed alone, and the split on its id alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from prime_core.api import DatasetError, Task
from prime_core.api.datasets import in_split
from prime_env_math.params import MathParams
from prime_env_math.procedural import algebra, calculus, counting, geometry, number_theory
from prime_env_math.procedural.order import Shuffle
from prime_env_math.procedural.problem import Problem, Template

TEMPLATES: tuple[Template, ...] = (
    *algebra.TEMPLATES,
    *number_theory.TEMPLATES,
    *counting.TEMPLATES,
    *geometry.TEMPLATES,
    *calculus.TEMPLATES,
)
BY_NAME = {template.full_name: template for template in TEMPLATES}
SOURCE = "prime-env-math"


def problem_of(task_id: str) -> Problem:
    """The problem behind the id of a procedural task.

    Raises:
        KeyError, ValueError: it isn't such an id.
    """
    name, _, values = task_id.partition(":")
    return BY_NAME[name].problem([int(value) for value in values.split(",")])


class ProceduralTasks(Sequence[Task]):
    """The tasks of one split: eight bytes a task are kept, the task is made when asked for.

    Args:
        params: topics, levels, seed, split and limit.
        finish: makes the prompt of a bare task.
    """

    def __init__(self, params: MathParams, finish: Callable[[Task], Task]) -> None:
        self._finish = finish
        self._templates = [
            template
            for template in TEMPLATES
            if template.topic in params.topics and template.level in params.levels
        ]
        self._orders = [
            Shuffle(template.size, f"prime-env-math {params.seed} {template.full_name}")
            for template in self._templates
        ]
        # Packed as position * templates + template.
        self._places = array("Q")
        for template, position in self._turns():
            if len(self._places) == params.limit:
                break
            if in_split(self._id(template, position), params.split, params.test_share):
                self._places.append(position * len(self._templates) + template)
        if not self._places:
            raise DatasetError(
                f"split {params.split!r} of the procedural problems is empty",
                where="environment math",
                fix="name more topics or levels, or raise test_share",
            )

    def _turns(self) -> Iterator[tuple[int, int]]:
        """(template, position in its order), one of each template at a time, until all are used."""
        for position in range(max((order.size for order in self._orders), default=0)):
            for template, order in enumerate(self._orders):
                if position < order.size:
                    yield template, position

    def _values(self, template: int, position: int) -> tuple[int, ...]:
        return self._templates[template].values(self._orders[template][position])

    def _id(self, template: int, position: int) -> str:
        values = ",".join(map(str, self._values(template, position)))
        return f"{self._templates[template].full_name}:{values}"

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        """The task at an index, or the tasks of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position, number = divmod(self._places[index], len(self._templates))
        template = self._templates[number]
        made = template.problem(self._values(number, position))
        return self._finish(
            Task(
                id=self._id(number, position),
                prompt=(),
                gold=made.gold,
                verification={},
                metadata={
                    "problem": made.question,
                    "topic": template.topic,
                    "level": template.level,
                    "template": template.name,
                },
                source=SOURCE,
            )
        )
