"""Restarts of vLLM's process as the driver sees them, with children that play their parts."""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vllm_children import Found, Lives, accept, drive, make_work, open_driver

from prime_core.api import EngineError, Generation, GenerationRequest
from prime_core.engines.vllm.driver import TRIES, Driver
from prime_core.engines.vllm.process import ChildGone
from prime_core.engines.vllm.work import Generating


def test_what_was_generated_before_a_death_is_kept() -> None:
    lives = Lives(4, 5, None)
    driver = open_driver(lives)
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
    driver = open_driver(Lives(*[0] * (TRIES + 1)))
    found = drive(driver)
    driver.close()
    assert all(isinstance(each, ChildGone) for each in found)
    assert driver.restarts == TRIES


def test_a_load_while_requests_are_under_way_is_refused(tmp_path: Path) -> None:
    lives = Lives(None)
    driver = open_driver(lives)
    driver._work["x"] = Generating(
        "x", GenerationRequest("x", "0", (1,), 0, 0, 1, 1.0), False, False, lambda found: None
    )
    with pytest.raises(EngineError, match="under way"):
        driver.load(lives, tmp_path, accept).result(timeout=30)
    driver.close()


def test_what_was_cancelled_is_not_asked_for_again() -> None:
    """vLLM died before it heard of the cancellation."""
    lives = Lives(2, None)
    driver = open_driver(lives)
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
    driver = open_driver(lives)
    with pytest.raises(ChildGone):
        driver.load(lives, tmp_path, accept).result(timeout=30)
    assert all(isinstance(each, Generation) for each in drive(driver))
    driver.close()
    assert len(lives.children) == 2


def test_a_callback_that_fails_ends_the_requests_and_not_the_engine() -> None:
    lives = Lives(None, None)
    driver = open_driver(lives)
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

    driver = Driver(dtype="float32", start_s=30, hang_s=30)
    with pytest.raises(EngineError, match="no interpreter"):
        driver.load(refuse, None, accept).result(timeout=30)
    driver.close()
