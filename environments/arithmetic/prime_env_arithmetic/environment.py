"""The environment itself: the task list, the prompts, the verifier and the second try.

Made by the factory in `__init__`; lives in an environment host and keeps no state between calls.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import overload

from prime_core.api import (
    Completion,
    DatasetError,
    EnvironmentInfo,
    Instruction,
    Message,
    Reply,
    Rng,
    Score,
    Task,
    TurnState,
    with_instruction,
)
from prime_core.api.datasets import in_split, tasks_digest
from prime_env_arithmetic.order import Permutation
from prime_env_arithmetic.params import ArithmeticParams
from prime_env_arithmetic.problems import Problem, problem, reverse_digits, space_size

NUMBER = re.compile(r"-?[0-9]+")
SIGNS = ("<", "=", ">")
SHOWN = 64  # characters of a wrong answer kept as evidence


class ArithmeticTasks(Sequence[Task]):
    """The tasks of one split: eight bytes a task are kept, the task is made when asked for."""

    def __init__(self, params: ArithmeticParams) -> None:
        self._params = params
        # The order is kept in the permutation's own numbers, which can be longer than 64 bits;
        # the positions never are.
        self._order = Permutation(space_size(params), params.seed)
        self._positions = array("Q")
        for position in range(self._order.size):
            if len(self._positions) == params.limit:
                break
            key = problem(params, self._order[position]).key
            if in_split(key, params.split, params.test_share):
                self._positions.append(position)
        if not self._positions:
            raise DatasetError(
                f"split {params.split!r} of {self._order.size} problems is empty",
                where=f"environment arithmetic, kind {params.kind}, digits {params.digits}",
                fix="raise test_share or digits",
            )

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        """The task at an index, or the tasks of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return make_task(self._params, problem(self._params, self._order[self._positions[index]]))


def make_task(params: ArithmeticParams, made: Problem) -> Task:
    """The task that asks a problem in the style of the parameters."""
    gold = reverse_digits(made.answer) if params.reversed else made.answer
    return Task(
        id=f"{params.kind}:{made.expression(params.digits)}",
        prompt=(Message("user", _question(params, made)),),
        gold=gold,
        metadata={"kind": params.kind, "digits": params.digits},
        source="prime-env-arithmetic",
    )


def _question(params: ArithmeticParams, made: Problem) -> str:
    if params.style == "compact":
        return made.expression(params.digits) + "="
    if params.kind == "comparison":
        first, second = made.operands
        return f"Which sign belongs between {first} and {second}: <, = or >? Answer with it alone."
    how = "with its digits in reverse order, the lowest first" if params.reversed else "alone"
    return f"What is {made.expression(1, ' ')}? Answer with the number {how}."


class ArithmeticVerifier:
    """The whole completion, stripped, must be the gold answer, character by character.

    A right answer is worth 1, another number (or sign) 0. A completion that is no number (or
    sign) at all is invalid_output.
    """

    def __init__(self, params: ArithmeticParams) -> None:
        self._params = params

    def verify(self, task: Task, completion: Completion) -> Score:
        """Score the model's last turn; a right second try is worth `second_try_value`."""
        if task.gold is None:
            return Score(None, "error", evidence={"kind": "gold", "detail": "the task has none"})
        answer = completion.text.strip()
        if not self.is_answer(answer):
            return Score(0.0, "invalid_output", evidence={"answer": answer[:SHOWN]})
        value = 1.0 if answer == task.gold else 0.0
        if self._params.kind == "retry" and _tries(completion.messages) > 1:
            value *= self._params.second_try_value
        return Score(value, evidence={"answer": answer[:SHOWN]})

    def is_answer(self, text: str) -> bool:
        """True for what could be an answer: a number, or a sign for comparisons."""
        if self._params.kind == "comparison":
            return text in SIGNS
        return NUMBER.fullmatch(text) is not None


def _tries(messages: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)


class ArithmeticEnvironment:
    """Problems of one kind, in one turn."""

    def __init__(self, params: ArithmeticParams) -> None:
        self._params = params
        self._tasks = ArithmeticTasks(params)
        self._verifier = ArithmeticVerifier(params)

    @cached_property
    def info(self) -> EnvironmentInfo:
        """Digest and chance level are counted over the tasks themselves."""
        return EnvironmentInfo(
            name="arithmetic",
            version=version("prime-env-arithmetic"),
            dataset_digest=tasks_digest(self._tasks),
            licence="Apache-2.0",
            chance_level=self._chance_level(),
        )

    @property
    def verifier(self) -> ArithmeticVerifier:
        """The exact verifier."""
        return self._verifier

    def tasks(self) -> Sequence[Task]:
        """The tasks of the split, in the order of the seed."""
        return self._tasks

    def render(self, task: Task, budget: Instruction | None) -> Sequence[Message]:
        """The question; a length budget's instruction goes to the message that it names."""
        return with_instruction(task.prompt, budget)

    def gold(self, task: Task) -> str:
        """The right answer."""
        assert task.gold is not None
        return task.gold

    def wrong(self, task: Task, rng: Rng) -> str:
        """Another number close by, or one of the other signs."""
        gold = self.gold(task)
        if self._params.kind == "comparison":
            return [sign for sign in SIGNS if sign != gold][rng.below(2)]
        answer = reverse_digits(gold) if self._params.reversed else gold
        shift = rng.below(18) - 9
        other = str(int(answer) + (shift if shift < 0 else shift + 1))
        return reverse_digits(other) if self._params.reversed else other

    def _chance_level(self) -> float:
        """The score of the policy that always gives the most frequent answer (for the kind
        retry: then the second most frequent one)."""
        shares = [count / len(self._tasks) for _, count in self._common_answers()]
        second = shares[1] if self._params.kind == "retry" and len(shares) > 1 else 0.0
        return shares[0] + second * self._params.second_try_value

    def _common_answers(self) -> list[tuple[str | None, int]]:
        return Counter(task.gold for task in self._tasks).most_common(2)


class RetryEnvironment(ArithmeticEnvironment):
    """Addition with one more try after a wrong answer: the smallest task of two turns."""

    def reply(self, state: TurnState) -> Reply | None:
        """Ask once more after a first answer that isn't right; None ends the rollout."""
        said = [message.content for message in state.messages if message.role == "assistant"]
        if len(said) != 1 or said[0].strip() == state.task.gold:
            return None
        question = state.task.prompt[-1].content
        if self._params.style == "words":
            question = f"That is not right. Try once more. {question}"
        return Reply((Message("user", question),))
