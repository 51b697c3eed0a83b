"""A distribution that offers one data set of reasoning-gym as an environment, written to a folder.

The sweep checks each of them as it would check a stranger's. Invariant: the adapter adds no
judgement of its own; the data set's scorer decides, on the text between the library's own marks.
"""

from __future__ import annotations

from pathlib import Path

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "prime-env-gym"
version = "0.1.0"
description = "One data set of reasoning-gym as an environment"
readme = "README.md"
requires-python = ">=3.11"
license = "Apache-2.0"
dependencies = ["prime-core>=0.1,<1", "reasoning-gym==0.1.25"]

[project.entry-points.prime_core]
"environment.gym" = "prime_env_gym"

[tool.hatch.build.targets.wheel]
packages = ["prime_env_gym"]
"""

README = """\
# prime-env-gym

Data sets of reasoning-gym as environments: `with = { dataset = "chain_sum" }`. The answer stands
between <answer> and </answer>, as the library's own system prompt asks, and the data set's own
`score_answer` judges it.
"""

TEST = '''\
"""The contract of environments."""

from prime_core.testing.contract import EnvironmentContract
'''

MODULE = '''\
"""Data sets of reasoning-gym as environments."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from prime_core.api import (
    EnvironmentInfo, EnvironmentSpec, Message, Params, Score, Task, hookimpl, with_instruction,
)
from prime_core.api.datasets import tasks_digest
from pydantic import Field

# Partial credit that is declared as chance; what earns more than this is a finding, not chance.
PARTIAL = 0.25
CANDIDATES = 8  # frequent answers that are tried as constants


def library(module: str) -> Any:
    """What makes data sets, with one of them registered.

    The package imports all 105 and what each needs, which is most of a short check's time; with
    empty packages in its place, one data set's module loads alone.
    """
    if module and module not in sys.modules:
        found = importlib.util.find_spec("reasoning_gym")
        assert found is not None
        folder = Path(found.submodule_search_locations[0])
        for name in ("reasoning_gym", module.rpartition(".")[0]):
            if name not in sys.modules:
                package = ModuleType(name)
                package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
                sys.modules[name] = package
        importlib.import_module("reasoning_gym.coaching")  # after the factory, it fails
        importlib.import_module(module)
    elif not module:
        importlib.import_module("reasoning_gym")
    return importlib.import_module("reasoning_gym.factory")


class GymParams(Params):
    """Which data set."""

    dataset: str = Field("chain_sum", description="its registered name")
    module: str = Field("", description="the module that holds it; empty loads the whole library")
    size: int = Field(40, ge=10, description="tasks")
    seed: int = Field(1234, description="of the generator")
    marks: Literal["plain", "library"] = Field(
        "plain", description="who finds the answer: a search for the last marks, or the library"
    )


class Gym:
    """A data set, judged by its own scorer."""

    def __init__(self, params: GymParams) -> None:
        self._name = params.dataset
        self._library_marks = params.marks == "library"
        create = library(params.module).create_dataset
        data = create(params.dataset, size=4 * params.size, seed=params.seed)
        self._data: Any = data
        self._items: list[dict[str, Any]] = []
        seen = set()
        for index in range(4 * params.size):
            item = data[index]
            if (item["question"], item["answer"]) not in seen and len(self._items) < params.size:
                seen.add((item["question"], item["answer"]))
                self._items.append(item)
            if len(self._items) == params.size:
                break
        self._tasks = [
            Task(f"{params.dataset}-{n}", (Message("user", self._question(one)),), one["answer"])
            for n, one in enumerate(self._items)
        ]
        self._chance = self._best_constant()
        if all(task.gold is not None for task in self._tasks):
            self.gold = lambda task: f"<answer>{task.gold}</answer>"

    def _question(self, item: dict[str, Any]) -> str:
        return f"{item['question']}\\n\\nGive the answer between <answer> and </answer>."

    def _best_constant(self) -> float:
        """What the best frequent answer earns, and one task more: these are only some answers."""
        golds = Counter(task.gold for task in self._tasks if task.gold is not None)
        if not golds:
            return 0.01
        modal = golds.most_common(1)[0][1] / len(self._items)
        best = max(
            sum(self._partial(gold, item) for item in self._items) / len(self._items)
            for gold, _ in golds.most_common(CANDIDATES)
        )
        declared = best if best <= modal + PARTIAL else modal
        return min(0.99, math.ceil(100 * (declared + 1 / len(self._items))) / 100)

    def _partial(self, answer: str, item: dict[str, Any]) -> float:
        try:
            return float(self._data.score_answer(answer, item))
        except Exception:
            return 0.0  # the check looks at scorers that raise; this only counts

    @property
    def info(self) -> EnvironmentInfo:
        """As the data set is, with the chance level counted."""
        return EnvironmentInfo(
            name=f"reasoning-gym {self._name}",
            version="0.1.25",
            dataset_digest=tasks_digest(self._tasks),
            licence="Apache-2.0",
            chance_level=self._chance,
        )

    @property
    def verifier(self) -> Gym:
        """Itself."""
        return self

    def verify(self, task: Task, completion: Any) -> Score:
        """The data set's scorer on the marked answer; whatever it raises is its own."""
        item = self._items[int(task.id.rpartition("-")[2])]
        if task.gold != item["answer"]:
            return Score(None, "error", evidence={"kind": "gold"})
        answer = self._marked(completion.text)
        if answer is None:
            return Score(0.0, "invalid_output")
        return Score(float(self._data.score_answer(answer, item)))

    def _marked(self, text: str) -> str | None:
        """What stands between the last pair of marks; None where there is none."""
        if self._library_marks:
            from reasoning_gym.utils import extract_answer

            return extract_answer(text)
        before, closed, _ = text.rpartition("</answer>")
        _, opened, answer = before.rpartition("<answer>")
        return answer.strip() if closed and opened else None

    def tasks(self) -> list[Task]:
        """All."""
        return self._tasks

    def render(self, task: Task, budget: Any) -> list[Message]:
        """The question."""
        return with_instruction(task.prompt, budget)


def make(params: GymParams, context: Any) -> Gym:
    """The environment."""
    return Gym(params)


@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    """Register it."""
    return [
        EnvironmentSpec(name="gym", params=GymParams, factory=make, summary="reasoning-gym")
    ]
'''


def write_adapter(dataset: str, module: str, folder: Path, marks: str = "plain") -> Path:
    """Write the distribution for one data set; returns its folder.

    Args:
        dataset: its name.
        module: where it is defined.
        marks: who finds the answer in a completion: "plain" or "library", as in its parameters.
    """
    files = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        "checks.toml": '[[cases]]\nplugin = "environment.gym"\n'
        f'with = {{ dataset = "{dataset}", module = "{module}", marks = "{marks}" }}\n',
        "prime_env_gym/__init__.py": MODULE,
        "prime_env_gym/py.typed": "",
        "tests/test_prime_env_gym.py": TEST,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
