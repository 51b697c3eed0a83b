"""The work that waits for a pool's hosts: fair between callers, bounded, one list per caller.

Callers submit, the pool's slots take. Invariant: every job that was submitted gets an outcome, and
an item is tried at most twice.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from prime_core.api.errors import FormatError
from prime_core.hosting.channel import Failure

TRIES = 2  # an item that failed is tried once more, alone

T = TypeVar("T")


class Job:
    """One item of one call."""

    __slots__ = ("call", "caller", "failures", "item", "outcome", "read")

    def __init__(
        self,
        caller: int,
        call: str,
        item: Any,
        read: Callable[[Any], Any],
        outcome: asyncio.Future[Any],
    ) -> None:
        self.caller = caller
        self.call = call
        self.item = item
        self.failures: list[Failure] = []
        self.read = read
        self.outcome = outcome  # what `read` made of the result, or the last Failure

    def finish(self, result: Any) -> Failure | None:
        """Set the outcome; the failure where the result isn't what it should be."""
        try:
            value = self.read(result)
        except FormatError as error:
            return Failure("value", error.what)
        if not self.outcome.done():
            self.outcome.set_result(value)
        return None


class WorkQueue:
    """Jobs by caller, taken in turns; failed ones wait apart, to be tried alone.

    Args:
        limit: jobs that may be queued or in work; above it `submit` waits.
    """

    def __init__(self, limit: int) -> None:
        self._space = asyncio.Semaphore(limit)
        self._callers: OrderedDict[int, deque[Job]] = OrderedDict()
        self._alone: deque[Job] = deque()
        self._arrived = asyncio.Event()
        self._numbers = 0
        self._queued = 0
        self._alone_last = False
        self._broken: BaseException | None = None

    def __len__(self) -> int:
        return self._queued + len(self._alone)

    async def submit(
        self, call: str, items: Sequence[Any], read: Callable[[Any], T]
    ) -> list[T | Failure]:
        """Queue the items of one call and wait for all outcomes, in order.

        Args:
            call: name of the call.
            items: its items, plain JSON.
            read: makes a value of one result, or raises `FormatError`.

        Raises:
            HostError: the queue was closed by `fail`.
        """
        loop = asyncio.get_running_loop()
        self._numbers += 1
        caller = self._numbers
        outcomes: list[asyncio.Future[Any]] = []
        try:
            for item in items:
                await self._space.acquire()
                outcome = loop.create_future()
                outcome.add_done_callback(self._release)
                outcomes.append(outcome)
                if self._broken is not None:
                    outcome.set_exception(self._broken)
                    break
                self._add(Job(caller, call, item, read, outcome))
            return [await outcome for outcome in outcomes]
        finally:
            self._forget(caller)  # empty, unless this call ends early
            for outcome in outcomes:
                if not outcome.cancel() and not outcome.cancelled():
                    outcome.exception()  # read, so that asyncio doesn't report it as forgotten

    def _forget(self, caller: int) -> None:
        self._queued -= len(self._callers.pop(caller, ()))
        self._alone = deque(job for job in self._alone if job.caller != caller)
        if not len(self):
            self._arrived.clear()

    def _release(self, outcome: asyncio.Future[Any]) -> None:
        self._space.release()

    def _add(self, job: Job, *, first: bool = False) -> None:
        jobs = self._callers.setdefault(job.caller, deque())
        jobs.appendleft(job) if first else jobs.append(job)
        self._queued += 1
        self._arrived.set()

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Queue again what a lost host had not begun."""
        for job in reversed(jobs):
            if not job.outcome.done():  # its caller may have been cancelled
                self._add(job, first=True)

    def fail_once(self, job: Job, failure: Failure) -> bool:
        """Note a failure; True where the job waits to be tried again, False where it ended."""
        job.failures.append(failure)
        if job.outcome.done():
            return False
        if len(job.failures) == TRIES:
            job.outcome.set_result(failure)
            return False
        self._alone.append(job)
        self._arrived.set()
        return True

    async def wait(self) -> None:
        """Wait until there is work."""
        await self._arrived.wait()

    def take(self, batch: int, hosts: int) -> list[Job]:
        """Jobs of one call for one host: at most `batch`, and at most its share of the queue.

        A job that failed before comes alone, in turns with the others.
        """
        jobs: list[Job] = []
        if self._alone and not (self._alone_last and self._queued):
            self._alone_last = True
            jobs = [self._alone.popleft()]
        elif self._queued:
            self._alone_last = False
            jobs = self._take_turns(min(batch, -(-self._queued // hosts)))
        if not len(self):
            self._arrived.clear()
        return jobs

    def _take_turns(self, limit: int) -> list[Job]:
        call = next(iter(self._callers.values()))[0].call
        jobs: list[Job] = []
        while len(jobs) < limit:
            before = len(jobs)
            for caller in list(self._callers):
                waiting = self._callers[caller]
                if waiting[0].call != call or len(jobs) >= limit:
                    continue
                jobs.append(waiting.popleft())
                self._callers.move_to_end(caller)
                if not waiting:
                    del self._callers[caller]
            if len(jobs) == before:
                break
        self._queued -= len(jobs)
        return jobs

    def fail(self, error: BaseException) -> None:
        """End all queued jobs, and those submitted from now on, with an error."""
        self._broken = error
        waiting = [job for jobs in self._callers.values() for job in jobs]
        for job in [*self._alone, *waiting]:
            if not job.outcome.done():
                job.outcome.set_exception(error)
        self._alone.clear()
        self._callers.clear()
        self._queued = 0
        self._arrived.clear()
