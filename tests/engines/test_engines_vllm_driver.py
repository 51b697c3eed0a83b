"""What the driver does with policies, silence, closing and broken requests; vLLM is played."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vllm_children import FakeChild, Found, Lives, accept, drive, make_work, open_driver

from prime_core.api import EngineError, Generation
from prime_core.engines.vllm import life
from prime_core.engines.vllm.driver import TRIES, Driver
from prime_core.engines.vllm.process import ChildGone
from prime_core.engines.vllm.tally import Tally

Deliver = Callable[[Any], None]


class Silent(FakeChild):
    """Takes requests and says nothing."""

    def _answer(self, requests: list[dict[str, Any]]) -> bool:
        self.asked += requests
        return True


class Playing:
    """Starts the children that it's given, one after the other."""

    def __init__(self, *makes: Callable[[Deliver], Any]) -> None:
        self._makes = list(makes)
        self.children: list[Any] = []

    def __call__(self, deliver: Deliver) -> tuple[Any, dict[str, Any]]:
        self.children.append(self._makes.pop(0)(deliver))
        return self.children[-1], {}


def living(deliver: Deliver) -> FakeChild:
    return FakeChild(deliver, None)


def silent(deliver: Deliver) -> Silent:
    return Silent(deliver, None)


def begin(driver: Driver) -> queue.Queue[Found]:
    ended: queue.Queue[Found] = queue.Queue()
    driver.begin([make_work(ended)])
    return ended


def test_a_silent_vllm_is_killed_whatever_is_asked_of_it() -> None:
    """Cancellations come four times a second while nobody needs a submission any more."""
    lives = Playing(silent, living)
    driver = open_driver(lives, hang_s=0.3)
    ended = begin(driver)
    asked_until = time.monotonic() + 60
    while ended.empty() and time.monotonic() < asked_until:
        driver.cancel(["g0"])
        time.sleep(0.01)
    found = ended.get_nowait()
    assert isinstance(found, Generation)
    assert found.finish_reason == "cancelled"
    assert lives.children[0].dead
    driver.close()


@pytest.mark.parametrize("fresh", [True, False])
def test_a_load_while_requests_are_under_way_changes_nothing(tmp_path: Path, fresh: bool) -> None:
    lives, other = Playing(silent, living), Playing()
    driver = open_driver(lives)
    ended = begin(driver)
    with pytest.raises(EngineError, match="1 requests are under way"):
        driver.load(other, None if fresh else tmp_path, accept).result(timeout=30)
    lives.children[0].kill()  # it is started anew with the policy that it had
    assert isinstance(ended.get(timeout=30), Generation)
    assert not other.children
    driver.close()


def test_a_load_behind_a_death_does_not_choose_what_is_started_anew(tmp_path: Path) -> None:
    lives, other = Playing(silent, silent, living), Playing()
    driver = open_driver(lives)
    ended = begin(driver)
    held = threading.Event()
    driver._inbox.put(lambda: void(held.wait(30)))
    lives.children[0].kill()
    lives.children[0]._deliver(None)  # heard before the load
    load = driver.load(other, tmp_path, accept)
    held.set()
    with pytest.raises(EngineError, match="under way"):
        load.result(timeout=30)
    lives.children[1].kill()
    assert isinstance(ended.get(timeout=30), Generation)
    assert not other.children
    driver.close()


def void(_: object) -> None:
    """A command returns nothing."""


class Reloading(FakeChild):
    """Survives a reload."""

    def send(self, kind: str, **fields: Any) -> None:
        if kind == "reload":
            self._deliver(({"kind": "reloaded", "weights": "new"}, []))
        else:
            super().send(kind, **fields)


def test_weights_that_nobody_accepts_answer_nothing(tmp_path: Path) -> None:
    def refuse(said: dict[str, Any]) -> None:
        raise EngineError(f"it has {said['weights']}", where="here", fix="look")

    lives, other = Playing(lambda deliver: Reloading(deliver, None), living), Playing()
    driver = open_driver(lives)
    with pytest.raises(EngineError, match="it has new"):
        driver.load(other, tmp_path, refuse).result(timeout=30)
    assert lives.children[0].dead
    assert all(isinstance(each, Generation) for each in drive(driver))
    assert not other.children
    driver.close()


def test_weights_that_changed_on_disk_are_not_loaded_under_the_old_name() -> None:
    lives = Playing(lambda deliver: FakeChild(deliver, 2), lambda d: FakeChild(d, None, "other"))
    driver = open_driver(lives)
    for found in drive(driver):
        assert isinstance(found, EngineError)
        assert "has other weights than before" in found.what
    assert lives.children[1].dead
    driver.close()


@pytest.mark.parametrize("error", [OSError("disk"), TypeError("float"), AttributeError("x")])
def test_whatever_keeps_vllm_from_starting_fails_the_load(error: Exception) -> None:
    def start(deliver: Deliver) -> Any:
        raise error

    driver = Driver(dtype="float32", start_s=30, hang_s=30)
    with pytest.raises(EngineError, match=f"{type(error).__name__}: {error}"):
        driver.load(start, None, accept).result(timeout=30)
    assert all(isinstance(each, EngineError) for each in drive(driver))  # no policy is loaded
    driver.load(Lives(None), None, accept).result(timeout=30)
    assert all(isinstance(each, Generation) for each in drive(driver))
    driver.close()


def test_one_policy_is_loaded_at_a_time() -> None:
    held = threading.Event()

    def slow(deliver: Deliver) -> Any:
        held.wait(30)
        return FakeChild(deliver, None), {}

    driver = Driver(dtype="float32", start_s=30, hang_s=30)
    first, second = driver.load(slow, None, accept), driver.load(Playing(), None, accept)
    held.set()
    with pytest.raises(EngineError, match="another load is under way"):
        second.result(timeout=30)
    assert first.result(timeout=30)["weights"] == "w"
    driver.close()


def test_a_closed_driver_says_so() -> None:
    driver = open_driver(Lives(None))
    held = threading.Event()
    driver._inbox.put(lambda: void(held.wait(30)))
    driver._inbox.put(driver._close)
    behind, load = begin(driver), driver.load(Lives(None), None, accept)
    held.set()
    with pytest.raises(EngineError, match="was closed"):
        load.result(timeout=30)
    assert "was closed" in str(behind.get(timeout=30))
    driver.close()
    with pytest.raises(EngineError, match="was closed"):
        driver.load(Lives(None), None, accept).result(timeout=30)
    with pytest.raises(EngineError, match="was closed"):
        begin(driver)
    driver.cancel(["g0"])
    driver.close()


def test_a_start_that_fails_is_tried_again() -> None:
    def dying(deliver: Deliver) -> Any:
        child = FakeChild(deliver, None)
        child.send = lambda kind, **fields: child._messages.put(("reload", {}))  # type: ignore
        return child

    def impossible(deliver: Deliver) -> Any:
        raise EngineError("no memory to fork", where="here", fix="wait")

    lives = Playing(lambda deliver: FakeChild(deliver, 2), dying, impossible, living)
    driver = open_driver(lives)
    assert all(isinstance(each, Generation) for each in drive(driver))
    driver.close()


def test_lives_that_do_not_get_far_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token each is no progress where a start takes a minute."""
    driver = open_driver(Lives(*[1] * 200))
    assert all(isinstance(each, ChildGone) for each in drive(driver, max_tokens=50))
    assert driver.restarts == TRIES
    driver.close()
    monkeypatch.setattr(life, "SOUND_TOKENS", 10)
    driver = open_driver(Lives(*[10] * 200))
    assert all(isinstance(each, Generation) for each in drive(driver, max_tokens=50))
    assert driver.restarts > TRIES
    driver.close()


def test_a_death_without_work_is_said_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    lives = Lives(None, None)
    driver = open_driver(lives)
    with caplog.at_level(logging.ERROR, logger="prime_core.engines.vllm"):
        lives.children[0].kill()
        heard = threading.Event()
        lives.children[0]._deliver(None)
        driver._inbox.put(heard.set)
        assert heard.wait(30)
        assert all(isinstance(each, Generation) for each in drive(driver))
    assert "the next request starts it anew" in caplog.text
    assert driver.restarts == 1
    driver.close()


def test_logits_of_nan_end_their_request_alone() -> None:
    class Broken(FakeChild):
        def _answer(self, requests: list[dict[str, Any]]) -> bool:
            key = requests[0]["key"]
            news = [[key, [5], [math.nan], 0, ""]]
            self._deliver(({"kind": "tokens", "tokens": news}, []))
            return super()._answer(requests[1:])

    lives = Playing(lambda deliver: Broken(deliver, None))
    driver = open_driver(lives)
    found = drive(driver)
    errors = [each for each in found if isinstance(each, EngineError)]
    assert [(each.what, each.where) for each in errors] == [("logits hold NaN", "request 0")]
    assert sum(isinstance(each, Generation) for each in found) == 1
    assert driver.restarts == 0
    driver.close()


def test_sums_go_on_over_restarts_and_peaks_last_until_the_next_weights() -> None:
    tally = Tally()
    tally.begin_life()
    tally.take({"preemptions": 2.0, "waiting": 5.0, "kv_cache_usage": 0.5})
    tally.take({"preemptions": 3.0, "waiting": 0.0, "kv_cache_usage": 0.0})
    assert tally.figures == {"preemptions": 3.0, "waiting": 5.0, "kv_cache_usage": 0.5}
    tally.begin_life()
    tally.take({"preemptions": 1.0, "waiting": 1.0, "kv_cache_usage": 0.1})
    assert tally.figures == {"preemptions": 4.0, "waiting": 5.0, "kv_cache_usage": 0.5}
    tally.begin_peaks()
    tally.take({"preemptions": 1.0, "waiting": 1.0, "kv_cache_usage": 0.1})
    assert tally.figures == {"preemptions": 4.0, "waiting": 1.0, "kv_cache_usage": 0.1}
