"""The client beside a worker: which version to fetch next, when to give one up, what to keep.

`prime-core fetch --follow` runs `follow`; the worker sees only the directory that it fills.
Versions that no unclosed step can use are never fetched (INTELLECT-2, section 2.2.3).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from prime_core.api.errors import PrimeError
from prime_core.shardcast.client import Client
from prime_core.shardcast.connection import Cancelled
from prime_core.shardcast.listening import Announcements
from prime_core.store.counter import StepRules

logger = logging.getLogger(__name__)

LOOK_S = 0.1
FIRST_BACK_OFF_S = 1.0
LONGEST_BACK_OFF_S = 60.0
SPARE = 2  # newest versions that stay although no step needs them: a worker may be loading one


def first_step(rules: StepRules, first_open: int, version: int) -> int | None:
    """The first unclosed step that may take new work of a version, or None."""
    first = max(first_open, 0 if version == 0 else version + rules.level)
    return first if first <= min(version + rules.max_lag, rules.steps - 1) else None


@dataclass(slots=True)
class Failures:
    """Versions that were given up, and when each may be tried again."""

    clock: Callable[[], float] = time.monotonic
    _until: dict[int, float] = field(default_factory=dict)
    _pause: dict[int, float] = field(default_factory=dict)

    def note(self, version: int) -> None:
        """It failed: back off, twice as long each time."""
        pause = self._pause.get(version, FIRST_BACK_OFF_S)
        self._until[version] = self.clock() + pause
        self._pause[version] = min(2 * pause, LONGEST_BACK_OFF_S)

    def ever(self, version: int) -> bool:
        """Whether it has failed at all."""
        return version in self._until

    def waits(self, version: int) -> bool:
        """Whether its back-off isn't over."""
        return self._until.get(version, 0.0) > self.clock()


def next_version(
    rules: StepRules,
    first_open: int,
    announced: Collection[int],
    held: Collection[int],
    failures: Failures,
) -> int | None:
    """The version to fetch now, or None.

    For each unclosed step in order, the newest version that it allows. One that failed comes after
    all others that some unclosed step can use; it is tried again only where there are none.
    """
    steps = {version: first_step(rules, first_open, version) for version in announced}
    useful = sorted((step, -version) for version, step in steps.items() if step is not None)
    failed: int | None = None
    for step, negative in useful:
        version = -negative
        if version in held or any(v > version and rules.allows(step, v) for v in held):
            continue
        if not failures.ever(version):
            return version
        if failed is None and not failures.waits(version):
            failed = version
    return failed


def kept(rules: StepRules, first_open: int, held: Collection[int]) -> list[int]:
    """Versions that stay on this disk."""
    newest = sorted(held)[-SPARE:]
    useful = (v for v in held if first_step(rules, first_open, v) is not None)
    return sorted({*newest, *useful})


def follow(
    client: Client,
    rules: StepRules,
    first_open: Callable[[], int],
    stop: threading.Event,
    tell: Callable[[str, Mapping[str, float]], None],
) -> None:
    """Fetch what the unclosed steps can use, one version at a time, until `stop` or the run's end.

    Args:
        client: fills the worker's directory.
        rules: of the run.
        first_open: asked again and again; the smallest step that isn't closed.
        stop: ends it.
        tell: told of every version that came or failed: an event and its numbers.
    """
    failures, announced = Failures(), Announcements(client)
    client.shelf.recover(stop)
    client.probe()
    announced.start()
    try:
        while not stop.is_set() and (step := first_open()) < rules.steps:
            held = client.shelf.whole()
            version = next_version(rules, step, announced.versions(), held, failures)
            if version is None:
                announced.wait(LOOK_S)
                continue
            _take(client, rules, first_open, version, failures, stop, tell)
            client.shelf.trim(kept(rules, first_open(), client.shelf.whole()))
    finally:
        announced.close()


def _take(
    client: Client,
    rules: StepRules,
    first_open: Callable[[], int],
    version: int,
    failures: Failures,
    stop: threading.Event,
    tell: Callable[[str, Mapping[str, float]], None],
) -> None:
    """Fetch one version, unless every step that could use it closes meanwhile."""
    useless, ended = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            if stop.is_set() or first_step(rules, first_open(), version) is None:
                useless.set()
                return

    watcher = threading.Thread(target=watch, name="watch", daemon=True)
    watcher.start()
    started = time.monotonic()
    try:
        entry = client.download(version, stop=useless).run()
    except Cancelled:
        logger.info("version %d: no unclosed step can use it any more", version)
        tell("skipped", {"version": version})
    except PrimeError as error:
        failures.note(version)
        logger.warning("version %d is given up: %s", version, error)
        tell("failed", {"version": version})
    else:
        seconds = time.monotonic() - started
        size = entry.reader.header.total_size
        logger.info("version %d: %d bytes in %.2f s", version, size, seconds)
        tell("fetched", {"version": version, "bytes": size, "seconds": seconds})
    finally:
        ended.set()
        watcher.join()
