"""A pool of hosts that isn't one: an environment in this process, failing where a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from prime_core.api import (
    Completion,
    HostError,
    Instruction,
    Message,
    Reply,
    Reward,
    Score,
    ScoredRollout,
    Task,
)
from prime_core.store.records import TaskList

COUNT = 20


@dataclass
class ToyPool:
    """Tasks `t0`..; a completion's score is 1 if its text has an even length."""

    label: str = "toy"
    multi_turn: bool = False
    unrendered: set[int] = field(default_factory=set)
    abstained: set[str] = field(default_factory=set)
    rewardless: bool = False
    renamed: bool = False
    slow_s: float = 0.0
    instructions: list[Instruction | None] = field(default_factory=list)
    rewarded: list[int] = field(default_factory=list)
    scored: list[Completion] = field(default_factory=list)

    @property
    def description(self) -> Any:
        return SimpleNamespace(label=self.label, multi_turn=self.multi_turn, task_count=COUNT)

    def task_list(self) -> TaskList:
        indices = list(range(1, COUNT, 2))
        ids = [f"t{index}" for index in indices]
        return TaskList.build(self.label, "digest", COUNT, indices, ids, (0.0, 1.0))

    async def tasks(self, indices: Sequence[int]) -> list[Task]:
        prefix = "other" if self.renamed else "t"
        return [Task(f"{prefix}{index}", (Message("user", f"q{index}"),)) for index in indices]

    async def render(
        self, requests: Sequence[tuple[int, Instruction | None]]
    ) -> list[tuple[Message, ...]]:
        if any(index in self.unrendered for index, _ in requests):
            raise HostError("can't render", kind="exception")
        self.instructions += [wish for _, wish in requests]
        return [
            (Message("user", f"q{index}" + (f" {wish.text}" if wish else "")),)
            for index, wish in requests
        ]

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        await asyncio.sleep(self.slow_s)
        self.scored += [completion for _, completion in items]
        return [
            Score(None, "abstained")
            if completion.text in self.abstained
            else Score(float(len(completion.text) % 2 == 0))
            for _, completion in items
        ]

    async def reward(
        self, task: int, rollouts: Sequence[ScoredRollout], length_budget: int | None, step: int
    ) -> list[Reward]:
        if self.rewardless:
            raise HostError("no reward today", kind="exception")
        self.rewarded.append(len(rollouts))
        return [
            Reward(one.score.value or 0.0, {"task": one.score.value or 0.0}) for one in rollouts
        ]

    async def reply(self, states: Sequence[Any]) -> list[Reply | None]:
        return [Reply((Message("user", "more"),)) if state[3] < 2 else None for state in states]
