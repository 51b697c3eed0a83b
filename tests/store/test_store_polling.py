"""A process that works from the store does all there is, then waits, and says for whom."""

from __future__ import annotations

import logging

from prime_core.store import polling
from prime_core.store.objects import ObjectStore


class Counting:
    """Has work three times, nothing twice, then ends."""

    def __init__(self) -> None:
        self.turns: list[bool] = []

    @property
    def finished(self) -> bool:
        return len(self.turns) == 5

    def poll(self) -> bool:
        self.turns.append(len(self.turns) < 3)
        return self.turns[-1]

    def waiting_for(self) -> str:
        return "node-a"


def test_it_sleeps_only_where_nothing_was_to_do_and_says_for_whom(tmp_path, monkeypatch) -> None:
    slept: list[float] = []
    told: list[dict[str, object]] = []
    monkeypatch.setattr(polling.time, "sleep", slept.append)
    poller = Counting()
    polling.poll_until_finished(
        poller,
        ObjectStore(f"file://{tmp_path}"),
        told.append,
        logger=logging.getLogger("test"),
        say_every_s=-1.0,
    )
    assert poller.turns == [True, True, True, False, False]
    assert slept == [polling.POLL_S] * 2
    assert [each["waiting_for"] for each in told] == ["node-a"] * 2


def test_a_remote_store_is_asked_rarely(monkeypatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(polling.time, "sleep", slept.append)
    store = ObjectStore("memory://polling")
    logger = logging.getLogger("test")
    polling.poll_until_finished(Counting(), store, lambda _: None, logger=logger, say_every_s=60.0)
    assert slept == [polling.REMOTE_POLL_S] * 2
