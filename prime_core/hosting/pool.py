"""`HostPool`: the only way in which the engine touches an environment, its verifier and reward.

Worker, profiler, evaluation and `prime-core score` open one per environment. Invariant: a call
always ends in time, and a grader that crashes, hangs or answers nonsense gives the status error,
never a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prime_core.api.errors import FormatError, HostError
from prime_core.api.types import (
    Completion,
    GoldReport,
    Instruction,
    Message,
    Reply,
    Reward,
    Score,
    ScoredRollout,
    Task,
)
from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting import values, wire
from prime_core.hosting.channel import Failure
from prime_core.hosting.description import HostDescription, read_description
from prime_core.hosting.hosts import Hosts
from prime_core.hosting.settings import HostSettings, host_settings
from prime_core.hosting.work import TRIES


class HostPool(Hosts):
    """Hosts of one environment. Made by `open` and used within one event loop."""

    same = ("info", "task_count")
    description: HostDescription

    def __init__(
        self,
        settings: HostSettings,
        hosting: HostingSection,
        run_dir: Path | None,
        log_dir: Path | None,
        *,
        has_reward: bool,
    ) -> None:
        super().__init__(settings, hosting, run_dir, log_dir)
        self._has_reward = has_reward

    @classmethod
    async def open(
        cls,
        environment: EnvironmentChoice,
        reward: PluginChoice | None,
        hosting: HostingSection,
        *,
        cache_dir: Path,
        run_dir: Path | None,
        block: Sequence[str] = (),
        log_dir: Path | None = None,
    ) -> HostPool:
        """Start the first host and learn what its environment is; the others start with work.

        Args:
            environment: the plugin, its parameters, its interpreter.
            reward: the reward function; None where only scores are wanted.
            hosting: how many hosts, and their limits.
            cache_dir: where plugins keep what they download.
            run_dir: the run's local directory, or None outside a run.
            block: what the run config blocks, as `Hub.discover` takes it.
            log_dir: where hosts log; default `run_dir`/logs, or a directory that is removed.

        Raises:
            HostError: the environment can't start; says in which phase, and shows the log's end.
        """
        settings = host_settings(environment, reward, hosting, cache_dir, run_dir, block)
        pool = cls(settings, hosting, run_dir, log_dir, has_reward=reward is not None)
        return await pool._opened()

    def _read_description(self, described: dict[str, Any]) -> None:
        self.description = read_description(self._settings.label, described)

    # --- calls ------------------------------------------------------------------------------------

    async def tasks(self, indices: Sequence[int]) -> list[Task]:
        """The tasks at these indices.

        Raises:
            HostError: one of them failed twice.
        """
        return await self._call("tasks", [self._index(i) for i in indices], wire.read_task)

    async def find(self, task_id: str) -> int | None:
        """The index of the task with this id; None where there is none."""

        def read(value: object) -> int | None:
            return None if value is None else values.whole(value, "index")

        return (await self._call("find", [task_id], read))[0]

    async def render(
        self, requests: Sequence[tuple[int, Instruction | None]]
    ) -> list[tuple[Message, ...]]:
        """The prompts of (task index, length-budget instruction).

        Raises:
            HostError: one of them failed twice.
        """
        items = [[self._index(i), wire.instruction_json(wish)] for i, wish in requests]
        return await self._call(
            "render", items, lambda value: wire.read_messages(value, "rendered messages")
        )

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """Scores of (task index, completion), in order.

        A verifier that crashes, hangs, raises or answers nonsense twice gives
        `Score(None, "error")` with its kind and detail as evidence.

        Raises:
            HostError: no host can be started any more, or the pool was closed.
        """
        low_high = self.description.info.score_range
        sent = [[self._index(i), wire.completion_json(said)] for i, said in items]
        outcomes = await self._outcomes(
            "score", sent, lambda value: wire.read_score(value, low_high)
        )
        return [error_score(found) if isinstance(found, Failure) else found for found in outcomes]

    async def reward(
        self, task: int, rollouts: Sequence[ScoredRollout], length_budget: int | None, step: int
    ) -> list[Reward]:
        """The rewards of one group's scored rollouts, in order.

        Raises:
            HostError: the reward function failed twice, or the pool was opened without one.
        """
        if not self._has_reward:
            raise HostError(
                "this pool has no reward function",
                kind="value",
                where=self._settings.where,
                fix="open it with a reward",
            )
        group = [wire.rollout_json(rollout) for rollout in rollouts]

        def read(value: object) -> list[Reward]:
            rewards = values.sequence(value, "rewards", wire.read_reward)
            if len(rewards) != len(group):
                raise FormatError(f"{len(rewards)} rewards for {len(group)} rollouts")
            return list(rewards)

        item = [self._index(task), group, length_budget, step]
        return (await self._call("reward", [item], read))[0]

    async def reply(
        self, states: Sequence[tuple[int, tuple[Message, ...], tuple[Message, ...], int]]
    ) -> list[Reply | None]:
        """What the environment answers in states of (task index, prompt, messages since, turn).

        None ends the rollout.

        Raises:
            HostError: one of them failed twice.
        """
        items = [
            [
                self._index(index),
                [wire.message_json(message) for message in prompt],
                [wire.message_json(message) for message in messages],
                turn,
            ]
            for index, prompt, messages, turn in states
        ]
        return await self._call("reply", items, wire.read_reply)

    async def gold(self, index: int) -> str:
        """A completion that solves the task.

        Raises:
            HostError: the environment has none, or failed twice.
        """
        if not self.description.has_gold:
            raise HostError(
                "this environment has no gold(task)",
                kind="value",
                where=self._settings.where,
                fix="ask only where description.has_gold is true",
            )
        return (await self._call("gold", [self._index(index)], _read_text))[0]

    async def check_golds(self, indices: Sequence[int]) -> list[GoldReport]:
        """Whether the verifier can judge by the gold answers of these tasks.

        Raises:
            HostError: the verifier has no `check_gold` (`description.checks_golds`), or failed
                twice.
        """
        return await self._call(
            "check_gold", [self._index(i) for i in indices], wire.read_gold_report
        )

    async def wrong(self, index: int, seed: int) -> str:
        """A completion that doesn't solve the task; the same for the same seed.

        Raises:
            HostError: the environment has none, or failed twice.
        """
        return (await self._call("wrong", [[self._index(index), seed]], _read_text))[0]

    # --- shared by the calls ----------------------------------------------------------------------

    def _index(self, index: int) -> int:
        if not 0 <= index < self.description.task_count:
            raise IndexError(f"task {index} of {self.description.task_count}")
        return index


def _read_text(value: object) -> str:
    return values.text(value, "completion")


def error_score(failure: Failure) -> Score:
    """The score of an item whose verifier failed twice: no value, and why as evidence."""
    evidence = {"kind": failure.kind, "detail": failure.detail, "tries": TRIES}
    if failure.where:
        evidence["where"] = failure.where
    return Score(None, "error", evidence=evidence)
