"""Third-party truth: what the ladder says of data sets of reasoning-gym, through a thin adapter.

Skipped where the package isn't installed: pip install -c constraints.txt reasoning-gym.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from check_fixtures import PYPROJECT, README, Files
from conftest import failed

from prime_core.check.outcome import Report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(
        importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym isn't installed"
    ),
]

ADAPTER = '''\
"""One data set of reasoning-gym as an environment."""

from prime_core.api import (
    EnvironmentInfo, EnvironmentSpec, Message, Params, Score, Task, hookimpl, with_instruction,
)
from prime_core.api.datasets import tasks_digest
from pydantic import Field


class GymParams(Params):
    """Which data set."""

    name: str = Field("chain_sum", description="registered name")
    size: int = Field(40, description="tasks")


class Gym:
    """Its own scorer judges."""

    def __init__(self, params):
        import reasoning_gym

        self._data = reasoning_gym.create_dataset(params.name, size=params.size, seed=1234)
        self._items = [self._data[index] for index in range(params.size)]
        self._tasks = [
            Task(f"{params.name}-{n}", (Message("user", one["question"]),), one["answer"])
            for n, one in enumerate(self._items)
        ]

    @property
    def info(self):
        """A chance level of one per cent, for floors that scorers pay."""
        return EnvironmentInfo("gym", "0.1.0", tasks_digest(self._tasks), "Apache-2.0",
                               chance_level=0.01)

    @property
    def verifier(self):
        """Itself."""
        return self

    def verify(self, task, completion):
        """The data set's scorer on the whole text."""
        item = self._items[int(task.id.rpartition("-")[2])]
        return Score(float(self._data.score_answer(completion.text.strip(), item)))

    def tasks(self):
        """All."""
        return self._tasks

    def render(self, task, budget):
        """The question."""
        return with_instruction(task.prompt, budget)

    def gold(self, task):
        """The answer."""
        return task.gold


@hookimpl
def prime_environments():
    """Register it."""
    return [EnvironmentSpec(name="gym", params=GymParams, summary="reasoning-gym",
                            factory=lambda params, context: Gym(params))]
'''

# Data set, rule that must find it, what it is.
KNOWN = [
    ("game_of_life_halting", "T04", "pays any text: it compares the truth of two texts"),
    ("coin_flip", "H01", "pays 0: partial credit by the first characters"),
    ("isomorphic_strings", "N01", "other questions under another hash seed"),
    ("ransom_note", "N01", "other questions under another hash seed"),
    ("prime_factorization", "R01", "raises on what is no number"),
]


def adapter(name: str) -> Files:
    """The adapter's distribution, with one data set as its case."""
    return {
        "pyproject.toml": PYPROJECT.replace("env-words", "env-gym")
        .replace("env_words", "env_gym")
        .replace("environment.words", "environment.gym"),
        "README.md": README,
        "checks.toml": f'[[cases]]\nplugin = "environment.gym"\nwith = {{ name = "{name}" }}\n',
        "prime_env_gym/__init__.py": ADAPTER,
    }


@pytest.mark.parametrize(("name", "rule", "what"), KNOWN, ids=[row[0] for row in KNOWN])
def test_known_defects_are_found(
    name: str, rule: str, what: str, checked: Callable[..., Report]
) -> None:
    report = checked(adapter(name), rule)
    assert failed(report) == {rule}, f"{name} {what}, and {rule} says {report.outcomes}"


def test_a_sound_data_set_passes(checked: Callable[..., Report]) -> None:
    report = checked(adapter("chain_sum"), "T01", "T02", "T04", "N01")
    assert failed(report) == set()
