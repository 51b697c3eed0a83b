"""An engine whose streams share a batch, step by step in the event loop, and a worker's tools.

No clock has a say: between two steps everybody else gets as many turns of the loop as it wants.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from toy_pools import ToyPool

from prime_core.api import (
    EngineCapabilities,
    EngineError,
    Generation,
    GenerationRequest,
    PolicyFiles,
)
from prime_core.assignment import EnvironmentShare
from prime_core.engines.planning import Planner
from prime_core.engines.turns import Player
from prime_core.rollout.produce import Producer
from prime_core.store.counter import Wait, Work
from prime_core.store.records import Dispatch
from prime_core.store.trace import Trace

TURNS = 200  # of the event loop between two steps: far more than a submission needs to begin
GROUP_SIZE = 4
LONG, SHORT = 40, 3


class OneWord:
    """A chat format of one token a text."""

    def prompt_tokens(self, messages: Any) -> tuple[int, ...]:
        return (1, 2, 3)

    def text(self, tokens: Any) -> str:
        return "a" * len(tokens)

    def reply_tokens(self, history: Any, reply: Any, last: int) -> tuple[int, ...]:
        return (7,)


@dataclass
class Running:
    request: GenerationRequest
    answers: asyncio.Queue[Generation]
    left: int
    count: int = 0


def one_is_long(request: GenerationRequest) -> int:
    """Tokens of a request: the first sample of each group is long."""
    return SHORT if int(request.id.rpartition("/")[2]) else LONG


class SharedBatch:
    """Generates as many tokens of each request as `length` says.

    Args:
        shares: whether it says that streams share its batch.
        fails_at: the step that breaks it.
    """

    def __init__(
        self,
        places: int,
        *,
        length: Callable[[GenerationRequest], int] = one_is_long,
        shares: bool = True,
        fails_at: int | None = None,
    ) -> None:
        self.places, self.length, self.fails_at = places, length, fails_at
        self.capabilities = EngineCapabilities(
            "shared", "shared", False, True, continuous_batch=places if shares else 0
        )
        self.figures: Mapping[str, float] = {}
        self.occupied: list[int] = []  # places that were taken, of each step
        self.begun_at: dict[str, int] = {}  # step at which a group's first request came
        self.ended: list[str] = []  # requests, as they ended
        self.loads: list[int] = []
        self.streams = 0
        self._queue: deque[Running] = deque()
        self._batch: list[Running] = []
        self.stepping: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None

    def load(self, policy: PolicyFiles) -> bytes:
        assert self.streams == 0, "weights under a batch"
        self.loads.append(policy.version)
        return policy.digest

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        answers: asyncio.Queue[Generation] = asyncio.Queue()
        asked = set()
        self.streams += 1
        try:
            async for request in requests:
                self._queue.append(Running(request, answers, self.length(request)))
                self.begun_at.setdefault(request.group_id, len(self.occupied))
                asked.add(request.id)
            if self.stepping is None or self.stepping.done():
                self.stepping = asyncio.create_task(self._steps())
            while asked:
                generation = await answers.get()
                if self._failed is not None:
                    raise self._failed
                asked.discard(generation.id)
                yield generation
        finally:
            self.streams -= 1
            for running in (*self._queue, *self._batch):
                if running.request.id in asked:
                    running.left = 0
            self._sweep()

    def cancel(self, group_id: str) -> None:
        for running in (*self._queue, *self._batch):
            if running.request.group_id == group_id:
                running.left = 0
                self._answer(running, "cancelled")
        self._sweep()

    async def _steps(self) -> None:
        while self._queue or self._batch:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            while self._queue and len(self._batch) < self.places:
                self._batch.append(self._queue.popleft())
            self.occupied.append(len(self._batch))
            if self.fails_at == len(self.occupied):
                self._failed = EngineError("it broke", where="engine shared", fix="none")
            for running in self._batch:
                running.left -= 1
                running.count += 1
                if running.left == 0 or self._failed:
                    self._answer(running, "stop")
            self._sweep()

    def _answer(self, running: Running, reason: Any) -> None:
        count = running.count
        self.ended.append(running.request.id)
        running.answers.put_nowait(
            Generation(running.request.id, (5,) * count, (-0.5,) * count, reason)
        )

    def _sweep(self) -> None:
        self._batch = [each for each in self._batch if each.left > 0]
        self._queue = deque(each for each in self._queue if each.left > 0)


@dataclass
class Script:
    """A seeker that hands out works in their order; an entry may be a condition to wait for."""

    works: list[Work]
    useless: Callable[[Dispatch], bool] = lambda dispatch: False
    waited_s: float = 0.0
    under_way: list[int] = field(default_factory=list)  # how many, at each look

    def look(self, under_way: Collection[Any] = ()) -> Work | Wait:
        self.under_way.append(len(under_way))
        return self.works[0] if self.works else Wait("nothing is left", over=True)

    async def seek(self) -> Work | None:
        return self.works[0] if self.works else None

    def is_useful(self, dispatch: Dispatch) -> bool:
        return not self.useless(dispatch)


class Tools:
    """What a worker works with, without store, keys and hosts."""

    def __init__(
        self, engine: SharedBatch, seeker: Script, run_dir: Path, *, turns: int = 1
    ) -> None:
        pool = ToyPool(multi_turn=turns > 1)
        self.engine, self.seeker = engine, seeker
        self.config = SimpleNamespace(engine=SimpleNamespace(use="shared"))
        self.trace = Trace(run_dir, "worker-0")
        self.submitted: list[tuple[int, int]] = []
        self.two_submitted = asyncio.Event()
        self.rows: dict[tuple[int, int], Any] = {}
        self.dispatched: list[Dispatch] = []
        self.logged: list[dict[str, Any]] = []
        self.metrics = SimpleNamespace(log=lambda step, **values: self.logged.append(values))
        self._numbers: dict[int, Any] = {}
        chat: Any = OneWord()
        planner = Planner({"toy": pool}, {"toy": pool.task_list()}, chat, None, "default", 200)
        answering: Any = {"toy": pool} if pool.multi_turn else {}
        player = Player(engine, chat, answering, 1.0, 200, 500, 4)  # type: ignore[arg-type]
        shares = [EnvironmentShare("toy", 1.0, 10)]
        self.producer = Producer(shares, planner, player, {"toy": pool}, self.trace)  # type: ignore

    def complete_statements(self) -> None:
        """There is no store."""

    def fetch(self, version: int) -> PolicyFiles:
        return PolicyFiles(version, Path(), (), bytes([version]) * 32)

    def drop_policies(self, keep: Collection[int]) -> None:
        """There are no files."""

    def parameters(self, policy: PolicyFiles) -> int:
        return 1

    def host_metrics(self) -> dict[str, float]:
        return {}

    def dispatch(self, work: Work, digest: bytes) -> Dispatch:
        assert self.seeker.works.pop(0) is work
        n = next(self._numbers.setdefault(work.step, itertools.count()))
        dispatch = Dispatch(
            *("run", work.step, "worker-0", n, work.version, digest.hex()),
            *(work.groups, GROUP_SIZE, "default"),
        )
        self.dispatched.append(dispatch)
        return dispatch

    def submit(self, dispatch: Dispatch, rows: Any) -> int:
        self.submitted.append((dispatch.step, dispatch.n))
        self.rows[dispatch.step, dispatch.n] = rows
        if len(self.submitted) == 2:
            self.two_submitted.set()
        return 1
