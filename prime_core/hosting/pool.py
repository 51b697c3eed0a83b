"""`HostPool`: the only way in which the engine touches an environment, its verifier and reward.

Worker, profiler, evaluation and `prime-core score` open one per environment. Invariant: a call
always ends in time, and a grader that crashes, hangs or answers nonsense gives the status error,
never a value.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from prime_core.api.errors import FormatError, HostError
from prime_core.api.types import (
    Completion,
    Instruction,
    Message,
    Reply,
    Reward,
    Score,
    ScoredRollout,
    Task,
)
from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting import wire
from prime_core.hosting.channel import Failure
from prime_core.hosting.counters import Counters
from prime_core.hosting.description import HostDescription, read_description
from prime_core.hosting.settings import HostSettings, host_settings
from prime_core.hosting.slot import Slot
from prime_core.hosting.work import TRIES, WorkQueue

QUEUE_BATCHES = 4  # batches per host that may wait before callers do

T = TypeVar("T")


class HostPool:
    """Hosts of one environment. Made by `open` and used within one event loop."""

    def __init__(
        self,
        settings: HostSettings,
        hosting: HostingSection,
        log_dir: Path,
        *,
        has_reward: bool,
        temporary: bool,
    ) -> None:
        self._settings = settings
        self._has_reward = has_reward
        self._log_dir = log_dir
        self._temporary = temporary
        self._counters = Counters(hosting.hosts)
        self._queue = WorkQueue(QUEUE_BATCHES * hosting.hosts * hosting.batch)
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", settings.label)
        self._slots = [
            Slot(
                settings,
                log_dir / f"host-{stem}-{os.getpid()}-{number}.log",
                self._queue,
                self._counters,
                batch=hosting.batch,
                hosts=hosting.hosts,
            )
            for number in range(hosting.hosts)
        ]
        self._running: list[asyncio.Task[None]] = []
        self._closed = False
        self.description: HostDescription

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
        temporary = log_dir is None and run_dir is None
        if log_dir is None:
            log_dir = (
                Path(tempfile.mkdtemp(prefix="prime-hosts-"))
                if run_dir is None
                else run_dir / "logs"
            )
        log_dir.mkdir(parents=True, exist_ok=True)
        settings = host_settings(environment, reward, hosting, cache_dir, run_dir, block)
        pool = cls(settings, hosting, log_dir, has_reward=reward is not None, temporary=temporary)
        try:
            await pool._start()
        except BaseException:
            await pool.close()
            raise
        return pool

    async def _start(self) -> None:
        described = await self._slots[0].start(full=True)
        try:
            self.description = read_description(self._settings.label, described)
        except FormatError as error:
            raise HostError(
                f"the environment describes itself wrongly: {error.what}",
                kind="value",
                where=self._settings.where,
                fix="correct the environment's info",
            ) from error
        expected = {key: described[key] for key in ("info", "task_count")}
        for slot in self._slots:
            slot.expected = expected
            task = asyncio.create_task(slot.run())
            task.add_done_callback(self._slot_ended)
            self._running.append(task)

    def _slot_ended(self, task: asyncio.Task[None]) -> None:
        """A mistake of our own in a slot must end the calls, not leave them waiting."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            failed = HostError(
                f"the pool failed: {type(error).__name__}: {error}",
                kind="protocol",
                where=self._settings.where,
                fix="report this as a bug of prime-core",
            )
            failed.__cause__ = error
            self._queue.fail(failed)

    async def __aenter__(self) -> HostPool:
        """The pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Kill all hosts and what they started; calls in progress end with `HostError`."""
        if self._closed:
            return
        self._closed = True
        self._queue.fail(HostError("the pool is closed", kind="crash", where=self._settings.where))
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.gather(*(slot.close() for slot in self._slots))
        if self._temporary:
            shutil.rmtree(self._log_dir, ignore_errors=True)

    def metrics(self) -> dict[str, float]:
        """Counts since `open`, queue length, busy share of the hosts, scores per second."""
        return self._counters.metrics(len(self._queue))

    @property
    def recycle_reasons(self) -> dict[str, int]:
        """Why hosts were replaced after a call, with counts."""
        return dict(self._counters.recycled)

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
            return None if value is None else wire.whole(value, "index")

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
        return [_error_score(found) if isinstance(found, Failure) else found for found in outcomes]

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
            rewards = wire.sequence(value, "rewards", wire.read_reward)
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

    async def _call(self, call: str, items: Sequence[Any], read: Callable[[Any], T]) -> list[T]:
        found: list[T] = []
        for number, outcome in enumerate(await self._outcomes(call, items, read)):
            if isinstance(outcome, Failure):
                raise HostError(
                    f"{call} failed {TRIES} times for item {number} of {len(items)} "
                    f"({outcome.kind}): {outcome.detail}",
                    kind=outcome.kind,
                    where=f"{self._settings.where}{f', {outcome.where}' if outcome.where else ''}",
                    fix=outcome.fix or f"read the host's log in {self._log_dir}",
                )
            found.append(outcome)
        return found

    async def _outcomes(
        self, call: str, items: Sequence[Any], read: Callable[[Any], T]
    ) -> list[T | Failure]:
        return await self._queue.submit(call, items, read)


def _read_text(value: object) -> str:
    return wire.text(value, "completion")


def _error_score(failure: Failure) -> Score:
    evidence = {"kind": failure.kind, "detail": failure.detail, "tries": TRIES}
    if failure.where:
        evidence["where"] = failure.where
    return Score(None, "error", evidence=evidence)
