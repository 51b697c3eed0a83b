"""Restarts of vLLM's process as the driver sees them, with children that play their parts."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_core.api import EngineError, Generation, GenerationRequest
from prime_core.engines.vllm.driver import TRIES, Driver
from prime_core.engines.vllm.process import ChildGone
from prime_core.engines.vllm.work import Generating

Found = Generation | BaseException


class FakeChild:
    """Answers as vLLM's process does: one token a request and step, 7, 8, 9, ..., then length.

    Args:
        deaths: it dies after so many tokens of this life; None for never. It doesn't survive a
            reload, and answers no cancellation.
    """

    def __init__(self, deliver: Callable[[Any], None], deaths: int | None) -> None:
        self._deliver = deliver
        self._left = deaths
        self.pid = 1
        self.dead = False
        self.asked: list[dict[str, Any]] = []
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, kind: str, **fields: Any) -> None:
        if self.dead:
            raise self.gone()
        self._messages.put((kind, fields))

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
                self._deliver(({"kind": "started", "weights": "w"}, []))
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


def test_what_was_generated_before_a_death_is_kept() -> None:
    lives = Lives(4, 5, None)
    driver = Driver(lives, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    found = drive(driver)
    driver.close()
    for each in found:
        assert isinstance(each, Generation)
        assert each.token_ids == (10, 11, 12, 13, 14, 15)
        assert len(each.logprobs) == 6
    assert driver.restarts == 2
    again = lives.children[1].asked[0]
    assert again["tokens"] == [1, 2, 10, 11, 12, 13]
    assert (again["position"], again["max_tokens"]) == (7, 2)


def test_a_vllm_that_dies_again_and_again_is_given_up() -> None:
    driver = Driver(Lives(*[0] * (TRIES + 1)), dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    found = drive(driver)
    driver.close()
    assert all(isinstance(each, ChildGone) for each in found)
    assert driver.restarts == TRIES


def test_a_load_while_requests_are_under_way_is_refused(tmp_path: Path) -> None:
    blocked = Lives(None)
    driver = Driver(blocked, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    driver._work["x"] = Generating(
        "x", GenerationRequest("x", "0", (1,), 0, 0, 1, 1.0), False, False, lambda found: None
    )
    with pytest.raises(EngineError, match="under way"):
        driver.reload(tmp_path).result(timeout=30)
    driver.close()


def make_work(ended: queue.Queue[Found], **changes: Any) -> Generating:
    request = replace(GenerationRequest("0", "0", (1, 2), 11, 3, 6, 1.0), **changes)
    return Generating("g0", request, wants_rows=False, keeps_rows=False, done=ended.put)


def test_what_was_cancelled_is_not_asked_for_again() -> None:
    """vLLM died before it heard of the cancellation."""
    lives = Lives(2, None)
    driver = Driver(lives, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    ended: queue.Queue[Found] = queue.Queue()
    told: list[int] = []

    def cancel_at_once(token: int, reason: str) -> None:
        told.append(token)
        if len(told) == 1:
            driver.cancel(["g0"])

    driver.begin([make_work(ended, on_token=cancel_at_once)])
    found = ended.get(timeout=30)
    driver.close()
    assert isinstance(found, Generation)
    assert found.finish_reason == "cancelled"
    assert found.token_ids == tuple(told)
    assert not any(child.asked for child in lives.children[1:])


def test_a_load_that_kills_vllm_says_so_and_the_next_request_starts_it_anew(tmp_path: Path) -> None:
    lives = Lives(None, None)
    driver = Driver(lives, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    with pytest.raises(ChildGone):
        driver.reload(tmp_path).result(timeout=30)
    assert all(isinstance(each, Generation) for each in drive(driver))
    driver.close()
    assert len(lives.children) == 2


def test_a_callback_that_fails_ends_the_requests_and_not_the_engine() -> None:
    lives = Lives(None, None)
    driver = Driver(lives, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    ended: queue.Queue[Found] = queue.Queue()

    def fail(token: int, reason: str) -> None:
        raise KeyError("theirs")

    driver.begin([make_work(ended, on_token=fail)])
    found = ended.get(timeout=30)
    assert isinstance(found, EngineError)
    assert "KeyError" in found.what
    assert all(isinstance(each, Generation) for each in drive(driver))
    driver.close()


def test_a_child_that_cannot_be_started_fails_the_load() -> None:
    def refuse(deliver: Callable[[Any], None]) -> Any:
        raise EngineError("no interpreter", where="here", fix="name one")

    driver = Driver(refuse, dtype="float32", start_s=30, hang_s=30)
    with pytest.raises(EngineError, match="no interpreter"):
        driver.restart().result(timeout=30)
    driver.close()
