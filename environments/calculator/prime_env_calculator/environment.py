"""The environment itself: tasks, prompts, and the calculator's replies between turns.

Made by the factory in `__init__`; lives in an environment host and keeps no state between calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version

from prime_core.api import (
    DatasetError,
    EnvironmentInfo,
    Instruction,
    Message,
    Reply,
    Rng,
    Task,
    TurnState,
    with_instruction,
)
from prime_core.api.datasets import in_split, tasks_digest
from prime_env_calculator.calculator import CalculatorError, calculate
from prime_env_calculator.params import CalculatorParams
from prime_env_calculator.problems import problem
from prime_env_calculator.verifier import ANSWER, CALL, CalculatorVerifier

# A seed's list holds repeats where numbers are small; so many in a row mean it's exhausted.
_PATIENCE = 10_000

TOOL = (
    "You have a calculator for whole numbers: write an expression such as <calc>12*(3+4)</calc>, "
    "stop, and its result comes back as <result>84</result>. You may use it {calls} times. When "
    "you know the answer, write it once, as a number alone: <answer>84</answer>."
)
NO_TOOL = "Write the answer once, as a number alone: <answer>84</answer>."


class CalculatorEnvironment:
    """Word problems whose numbers are too large to multiply by heart."""

    def __init__(self, params: CalculatorParams) -> None:
        self._params = params
        self._tasks = _tasks(params)

    @cached_property
    def info(self) -> EnvironmentInfo:
        """The chance level is what the most frequent answer gets on these very tasks."""
        (_, count), *_ = Counter(task.gold for task in self._tasks).most_common(1)
        return EnvironmentInfo(
            name="calculator",
            version=version("prime-env-calculator"),
            dataset_digest=tasks_digest(self._tasks),
            licence="Apache-2.0",
            chance_level=count / len(self._tasks),
        )

    @property
    def verifier(self) -> CalculatorVerifier:
        """The exact verifier."""
        return CalculatorVerifier()

    def tasks(self) -> Sequence[Task]:
        """The tasks of the split, in the order of the seed."""
        return self._tasks

    def render(self, task: Task, budget: Instruction | None) -> Sequence[Message]:
        """The question and how to use the tool."""
        return with_instruction(task.prompt, budget)

    def reply(self, state: TurnState) -> Reply | None:
        """The result of the last expression that the model's turn asks for.

        None ends the rollout: the turn has an answer, asks for nothing, or asks once too often.
        """
        said = [message.content for message in state.messages if message.role == "assistant"]
        calls = CALL.findall(said[-1]) if said else []
        if not calls or ANSWER.search(said[-1]) or len(said) > self._params.calls:
            return None
        try:
            text = f"<result>{calculate(calls[-1])}</result>"
        except CalculatorError as error:
            text = f"<error>{error}</error>"
        return Reply((Message("user", text),))

    def gold(self, task: Task) -> str:
        """The right answer in its tags."""
        return f"<answer>{task.gold}</answer>"

    def wrong(self, task: Task, rng: Rng) -> str:
        """A number close by."""
        assert task.gold is not None
        shift = 1 + rng.below(9)
        return f"<answer>{int(task.gold) + (shift if rng.below(2) else -shift)}</answer>"


def _tasks(params: CalculatorParams) -> list[Task]:
    tasks: dict[str, Task] = {}
    index = since = 0
    how = TOOL.format(calls=params.calls) if params.calls else NO_TOOL
    while len(tasks) < params.limit and since < _PATIENCE:
        made = problem(params.seed, index, params.digits)
        index += 1
        since += 1
        if made.key in tasks or not in_split(made.key, params.split, params.test_share):
            continue
        since = 0
        tasks[made.key] = Task(
            id=made.key,
            prompt=(Message("user", f"{made.question}\n\n{how}"),),
            gold=calculate(made.expression),
            metadata={"digits": params.digits},
            source="prime-env-calculator",
        )
    if not tasks:
        raise DatasetError(
            f"split {params.split!r} is empty",
            where="environment calculator",
            fix="raise test_share or digits",
        )
    return list(tasks.values())
