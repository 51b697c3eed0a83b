"""A driver of vLLM with children that play their parts, for tests that need no vLLM."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prime_core.api import Generation, GenerationRequest
from prime_core.engines.vllm.driver import Driver
from prime_core.engines.vllm.process import ChildGone
from prime_core.engines.vllm.work import Generating

Found = Generation | BaseException


class FakeChild:
    """Answers as vLLM's process does: one token a request and step, 7, 8, 9, ..., then length.

    Args:
        deaths: it dies after so many tokens of this life; None for never. It doesn't survive a
            reload, and answers no cancellation.
        weights: what it says of the weights that it has after a start.
    """

    def __init__(
        self, deliver: Callable[[Any], None], deaths: int | None, weights: str = "w"
    ) -> None:
        self._deliver = deliver
        self._left = deaths
        self._weights = weights
        self.pid = 1
        self.dead = False
        self.asked: list[dict[str, Any]] = []
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, kind: str, **fields: Any) -> None:
        self._messages.put((kind, fields))  # a dead one doesn't read it

    def gone(self, what: str = "died") -> ChildGone:
        return ChildGone(what, where="a log", fix="read it")

    def kill(self) -> None:
        self.dead = True
        self._messages.put(None)

    close = kill

    def _run(self) -> None:
        while (message := self._messages.get()) is not None:
            kind, fields = message
            if kind == "start":
                self._deliver(({"kind": "started", "weights": self._weights}, []))
            elif kind == "reload":
                break  # as vLLM's does over weights that it can't load
            elif kind == "generate" and not self._answer(fields["requests"]):
                break
        self.dead = True
        self._deliver(None)

    def _answer(self, requests: list[dict[str, Any]]) -> bool:
        self.asked += requests
        for request in requests:
            for index in range(request["max_tokens"]):
                if self._left == 0:
                    return False
                self._left = None if self._left is None else self._left - 1
                over = "length" if index == request["max_tokens"] - 1 else ""
                token = 7 + request["position"] + index
                self._deliver(
                    ({"kind": "tokens", "tokens": [[request["key"], [token], [-0.5], 0, over]]}, [])
                )
        return True


class Lives:
    """Starts fake children, each with its own number of tokens before it dies."""

    def __init__(self, *deaths: int | None) -> None:
        self._deaths = list(deaths)
        self.children: list[FakeChild] = []

    def __call__(self, deliver: Callable[[Any], None]) -> tuple[Any, dict[str, Any]]:
        child = FakeChild(deliver, self._deaths.pop(0))
        self.children.append(child)
        return child, {}


def drive(driver: Driver, *, max_tokens: int = 6, count: int = 2) -> list[Found]:
    ended: queue.Queue[Found] = queue.Queue()
    works = [
        Generating(
            key=f"g{index}",
            request=GenerationRequest(f"{index}", "0", (1, 2), 11, 3, max_tokens, 1.0),
            wants_rows=False,
            keeps_rows=False,
            done=ended.put,
        )
        for index in range(count)
    ]
    driver.begin(works)
    return [ended.get(timeout=30) for _ in works]


def make_work(ended: queue.Queue[Found], **changes: Any) -> Generating:
    request = replace(GenerationRequest("0", "0", (1, 2), 11, 3, 6, 1.0), **changes)
    return Generating("g0", request, wants_rows=False, keeps_rows=False, done=ended.put)


def accept(said: Any) -> None:
    """Any weights are right."""


def open_driver(start: Any, *, hang_s: float = 30) -> Driver:
    """A driver that has loaded a policy."""
    driver = Driver(dtype="float32", start_s=30, hang_s=hang_s)
    driver.load(start, None, accept).result(timeout=30)
    return driver
