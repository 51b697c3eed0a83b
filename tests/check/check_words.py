"""A small distribution that every rule holds for: an environment of forty words.

The fixtures of the check change it, one rule at a time.
"""

from __future__ import annotations

Files = dict[str, str]  # path to text

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "prime-env-words"
version = "0.1.0"
description = "Write a word of a list"
readme = "README.md"
requires-python = ">=3.11"
license = "Apache-2.0"
dependencies = ["prime-core>=0.1,<1"]

[project.entry-points.prime_core]
"environment.words" = "prime_env_words"

[tool.hatch.build.targets.wheel]
packages = ["prime_env_words"]
"""

README = """\
# prime-env-words

Forty made words of five letters; the model is asked for one by its number. The whole completion,
stripped, must be the word. A small environment that every rule of the check holds for.
"""

INIT = '''\
"""The environment `words`."""

from prime_core.api import EnvironmentSpec, hookimpl
from prime_env_words.environment import WordsEnvironment, WordsParams


def make(params, context):
    """The environment."""
    return WordsEnvironment(params)


@hookimpl
def prime_environments():
    """Register it."""
    return [
        EnvironmentSpec(name="words", params=WordsParams, factory=make, summary="Words of a list")
    ]
'''

ENVIRONMENT = '''\
"""Forty words; the model is asked for one by number."""

from __future__ import annotations

import os
import time
from typing import Literal

from pydantic import Field

from prime_core.api import EnvironmentInfo, Message, Params, Score, Task, with_instruction
from prime_core.api.datasets import in_split, tasks_digest

LETTERS = "bcdfghjklmnpqrstvwxz"
WORDS = [
    LETTERS[n % 20] + "aeiou"[n % 5] + LETTERS[(3 * n + 7) % 20] + "aeiou"[n // 8] + LETTERS[n // 2]
    for n in range(40)
]
MADE = 0


class WordsParams(Params):
    """What is asked."""

    split: Literal["train", "test", "all"] = Field("all", description="which words")


class WordsVerifier:
    """The whole completion, stripped, must be the word."""

    def __init__(self):
        self.seen = set()

    def verify(self, task, completion):
        """1 for the word, 0 for anything else."""
        if task.gold is None:
            return Score(None, "error", evidence={"kind": "gold"})
        answer = completion.text.strip()
        # verify
        return Score(1.0 if answer == task.gold else 0.0)


class WordsEnvironment:
    """The environment."""

    def __init__(self, params):
        global MADE
        MADE += 1
        # made
        words = list(WORDS)
        # words
        self._tasks = [self._task(n, word) for n, word in enumerate(words)]
        self._tasks = [each for each in self._tasks if in_split(each.gold, params.split, 0.3)]
        # tasks
        self._verifier = WordsVerifier()

    def _task(self, number, word):
        question = f"Which word has the number {WORDS.index(word)} in the list?"
        metadata = {}
        # task
        return Task(id=f"word-{number}", prompt=(Message("user", question),), gold=word,
                    metadata=metadata)

    @property
    def info(self):
        """One word of forty is right by chance."""
        return EnvironmentInfo(
            name="words",
            version="0.1.0",
            dataset_digest=tasks_digest(self._tasks),
            licence="CC0-1.0",
            chance_level=1 / len(self._tasks),
        )

    @property
    def verifier(self):
        """The verifier."""
        return self._verifier

    def tasks(self):
        """All of them."""
        return self._tasks

    def render(self, task, budget):
        """The question."""
        return with_instruction(task.prompt, budget)

    def gold(self, task):
        """The word."""
        return task.gold

    def wrong(self, task, rng):
        """The word with another letter."""
        return task.gold[:4] + "y"
'''

TEST = '''\
"""The contract of environments."""

from prime_core.testing.contract import EnvironmentContract
'''

CHECKS = """\
evaluation_sets = ["evaluation.jsonl"]

[evidence]
"""
EVALUATION = (
    '"How many marbles does a child have that had three of them and was given four more?"\n'
)

GOOD: Files = {
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    "checks.toml": CHECKS,
    "evaluation.jsonl": EVALUATION,
    "prime_env_words/__init__.py": INIT,
    "prime_env_words/environment.py": ENVIRONMENT,
    "prime_env_words/py.typed": "",
    "tests/test_words_contract.py": TEST,
}
