"""Small plugins that keep their contracts, and that tests break one rule at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

from prime_core.api import (
    Decision,
    EnvironmentInfo,
    Instruction,
    Message,
    Reply,
    Reward,
    Score,
    Task,
    with_instruction,
)
from prime_core.api.datasets import tasks_digest


class Parity:
    """Whether a number is even, in two tries."""

    info = EnvironmentInfo("parity", "1", "", "Apache-2.0", chance_level=0.5)

    def __init__(self) -> None:
        self.made = [
            Task(f"t{n}", (Message("user", f"Is {n} even or odd?"),), ("even", "odd")[n % 2])
            for n in range(40)
        ]
        self.info = replace(self.info, dataset_digest=tasks_digest(self.made))

    @property
    def verifier(self):
        return self

    def tasks(self):
        return self.made

    def render(self, task, budget):
        return with_instruction(task.prompt, budget)

    def verify(self, task, completion):
        if completion.text not in ("even", "odd"):
            return Score(0.0, "invalid_output")
        return Score(1.0 if completion.text == task.gold else 0.0)

    def gold(self, task):
        return task.gold

    def wrong(self, task, rng):
        return "odd" if task.gold == "even" else "even"

    def reply(self, state):
        if len(state.messages) > 2:
            return None
        return Reply((Message("user", "Are you sure?"),))


class AsyncParity(Parity):
    async def verify(self, task, completion):
        await asyncio.sleep(0)
        return Parity.verify(self, task, completion)


class Plain:
    def reward(self, group):
        return [Reward(rollout.score.value) for rollout in group.rollouts]


class Halves:
    def draw(self, rng, task, node_class, step):
        return None if rng.below(2) else 100 * (1 + rng.below(3))

    def instruction(self, budget):
        return Instruction(f"Think for {budget} tokens.")


class Mixed:
    def keep_group(self, group):
        keep = len({reward.total for reward in group.rewards}) > 1
        return Decision(keep, "mixed" if keep else "equal rewards")

    def keep_task(self, task, profile):
        if profile is None:
            return Decision(False, "no profile")
        return Decision(0 < profile.pass_rate < 1, "pass rate")


class Memory:
    rows: ClassVar[dict[tuple[int, str], float]] = {}

    def log(self, step, metrics):
        self.rows.update({(step, name): value for name, value in metrics.items()})

    def close(self):
        pass
