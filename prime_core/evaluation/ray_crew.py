"""A crew of Ray actors on a cluster that exists: `--on ray` and `--on ray://HOST:PORT`.

Invariant: a unit belongs to one actor until its results are here; when the actor is lost, its units
go back to the front of the queue, and another actor takes its place.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prime_core.api.errors import RunError
from prime_core.evaluation.crew import Deliver
from prime_core.evaluation.orders import Order
from prime_core.evaluation.ray_worker import RayWorker
from prime_core.evaluation.units import Unit

LOSSES = 3  # a unit whose worker was lost so often is taken for the cause
FAILED_STARTS = 3  # workers lost before they were ready, one after another
WAIT_S = 0.5  # how long the loop waits before it looks whether it was stopped


@dataclass(slots=True)
class Hand:
    """One actor as the crew sees it.

    Attributes:
        opening: the reference of its `open` until that is done.
        doing: its units, by the reference of the result.
    """

    actor: Any
    opening: Any
    host: str = ""
    pid: int = 0
    doing: dict[Any, Unit] = field(default_factory=dict)


class RayCrew:
    """Actors on the cluster at `address`, one CPU each.

    Attributes:
        lost: workers that were lost so far.
    """

    def __init__(
        self,
        address: str,
        workers: int | None = None,
        on_ready: Callable[[str, int], None] = lambda host, pid: None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            address: ray (the cluster of this machine, or of RAY_ADDRESS) or ray://HOST:PORT.
            workers: actors; None for one a CPU of the cluster.
            on_ready: told of each worker, by host and process id.
        """
        self._address, self._workers, self._on_ready = address, workers, on_ready
        self.lost = 0
        self._hands: list[Hand] = []
        self._again: deque[Unit] = deque()
        self._losses: Counter[int] = Counter()
        self._failed_starts = 0
        self._stopped = threading.Event()

    async def run(self, order: Order, units: Iterator[Unit], deliver: Deliver) -> None:
        """See `Crew`; `deliver` is called from another thread, one call at a time.

        Raises:
            RunError: no cluster, another environment there, or workers are lost again and again.
        """
        first = next(units, None)
        if first is None:
            return  # no cluster is needed for nothing
        self._again.append(first)
        ray = connect(self._address)  # here, as Ray sets signal handlers in the main thread alone
        working = asyncio.create_task(asyncio.to_thread(self._work, ray, order, units, deliver))
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            self._stopped.set()
            await asyncio.gather(working, return_exceptions=True)
            raise

    def _work(self, ray: Any, order: Order, units: Iterator[Unit], deliver: Deliver) -> None:
        count = self._workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._again.extend(itertools.islice(units, count))
        count = min(count, len(self._again))  # nobody is hired for nothing
        try:
            while not self._stopped.is_set():
                unit = self._next(units)
                while unit is not None and len(self._hands) < count:
                    self._hands.append(self._hire(ray, order))
                unit = self._hand_out(unit, units, order.depth)
                if unit is not None:
                    self._again.appendleft(unit)
                elif not any(hand.doing for hand in self._hands):
                    return
                self._look(ray, deliver)
        finally:
            self._dismiss(ray)

    def _next(self, units: Iterator[Unit]) -> Unit | None:
        return self._again.popleft() if self._again else next(units, None)

    def _hire(self, ray: Any, order: Order) -> Hand:
        # More at a time than units in work, so that `close` isn't kept waiting.
        options = {"num_cpus": 1, "max_restarts": 0, "max_concurrency": order.depth + 2}
        actor = ray.remote(RayWorker).options(**options).remote(order.to_json())
        return Hand(actor, actor.open.remote())

    def _hand_out(self, unit: Unit | None, units: Iterator[Unit], depth: int) -> Unit | None:
        """Give ready actors their units, evenly; returns the unit that nobody could take."""
        while unit is not None:
            ready = [hand for hand in self._hands if hand.opening is None]
            hand = min(ready, key=lambda one: len(one.doing), default=None)
            if hand is None or len(hand.doing) >= depth:
                return unit
            hand.doing[hand.actor.do.remote(list(unit.items))] = unit
            unit = self._next(units)
        return None

    def _look(self, ray: Any, deliver: Deliver) -> None:
        """Wait for something to end, and see what it is."""
        waiting = {
            reference: hand
            for hand in self._hands
            for reference in ([hand.opening] if hand.opening is not None else hand.doing)
        }
        if not waiting:
            return
        done, _ = ray.wait(list(waiting), num_returns=1, timeout=WAIT_S)
        for reference in done:
            hand = waiting[reference]
            try:
                found = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise RunError(
                    f"a worker failed: {error}",
                    where=f"Ray worker on {hand.host or 'an unknown machine'}",
                    fix="install the same version of prime-core on every machine",
                ) from error
            except ray.exceptions.RayError as error:
                self._lose(hand, error)
                continue
            if "error" in found:
                raise _error_of(found["error"], hand)
            if reference == hand.opening:
                hand.opening, hand.host, hand.pid = None, found["host"], found["pid"]
                self._failed_starts = 0
                self._on_ready(hand.host, hand.pid)
            else:
                deliver(hand.doing.pop(reference).number, found["results"])

    def _lose(self, hand: Hand, error: Exception) -> None:
        self.lost += 1
        self._hands.remove(hand)
        if hand.opening is not None:
            self._failed_starts += 1
            if self._failed_starts == FAILED_STARTS:
                raise RunError(
                    f"{FAILED_STARTS} workers were lost before they were ready: {_line(error)}",
                    where=self._address,
                    fix="read the Ray workers' logs; is prime-core installed there?",
                ) from error
        for unit in reversed(hand.doing.values()):
            self._losses[unit.number] += 1
            if self._losses[unit.number] == LOSSES:
                raise RunError(
                    f"{LOSSES} workers were lost while they did unit {unit.number}: {_line(error)}",
                    where=self._address,
                    fix="see whether its tasks exhaust the machine's memory; then run this again",
                ) from error
            self._again.appendleft(unit)

    def _dismiss(self, ray: Any) -> None:
        """End every actor, hosts first; those that don't answer are killed."""
        closing = [hand.actor.close.remote() for hand in self._hands if hand.opening is None]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=10.0)
        for hand in self._hands:
            ray.kill(hand.actor)
        self._hands.clear()


def connect(address: str) -> Any:
    """The module `ray`, connected to a cluster that exists.

    Raises:
        RunError: Ray isn't installed, or there is no cluster.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise RunError(
            "Ray isn't installed", where=f"--on {address}", fix="pip install 'prime-core[ray]'"
        ) from error
    if not ray.is_initialized():
        try:
            ray.init(
                address="auto" if address == "ray" else address,
                log_to_driver=False,
                logging_level="warning",
            )
        except (ConnectionError, RuntimeError, TimeoutError) as error:
            raise RunError(
                f"no Ray cluster there: {_line(error)}",
                where=f"--on {address}",
                fix="start one with `ray start --head`, or give ray://HOST:PORT of one that runs; "
                "where it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN",
            ) from error
    return ray


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _error_of(told: dict[str, Any], hand: Hand) -> RunError:
    place = f"Ray worker on {hand.host}" if hand.host else "Ray worker"
    where = f"{place}, {told['where']}" if told["where"] else place
    return RunError(told["what"], where=where, fix=told["fix"])
