"""One place of a pool: keeps a host running and works off the queue with it.

`HostPool` runs one task per slot. Invariant: a job taken from the queue is answered, queued again,
or failed; and the host that a job was lost with is never used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prime_core.api.errors import FormatError, HostError
from prime_core.hosting.channel import Ended, Failure
from prime_core.hosting.counters import Counters
from prime_core.hosting.process import HostProcess, StartError
from prime_core.hosting.settings import HostSettings
from prime_core.hosting.work import Job, WorkQueue

BACK_OFF_S = (0.0, 0.2, 1.0, 5.0)  # pauses before the tries to start a host


class Slot:
    """A host, its log, and the loop that feeds it."""

    def __init__(
        self,
        settings: HostSettings,
        log: Path,
        queue: WorkQueue,
        counters: Counters,
        *,
        batch: int,
        hosts: int,
    ) -> None:
        self._settings = settings
        self._log = log
        self._queue = queue
        self._counters = counters
        self._batch = batch
        self._hosts = hosts
        self._host: HostProcess | None = None
        self.expected: dict[str, Any] | None = None  # what every host of the pool must describe

    async def start(self, *, full: bool = False) -> dict[str, Any]:
        """Start a host, with pauses between the tries; returns its description.

        Raises:
            StartError: it failed in a way that stays, or too often in a row.
        """
        last: StartError | None = None
        for pause in BACK_OFF_S:
            await asyncio.sleep(pause)
            try:
                host = HostProcess(self._settings, self._log)
                description = await host.open(full)
            except StartError as error:
                self._counters.failed_starts += 1
                if error.final:
                    raise
                last = error
                continue
            if self.expected is not None and description != self.expected:
                await host.kill()
                raise self._differs(description)
            self._host = host
            self._counters.starts += 1
            return description
        assert last is not None
        raise last

    def _differs(self, description: dict[str, Any]) -> StartError:
        return StartError(
            f"two hosts loaded different environments: {self.expected} and {description}",
            kind="value",
            where=self._settings.where,
            fix="make tasks() and info the same at every start, whatever the process",
            final=True,
        )

    async def run(self) -> None:
        """Work until cancelled; a host that can't be started ends the whole queue."""
        while True:
            await self._queue.wait()
            if self._host is None:
                try:
                    await self.start()
                except HostError as error:
                    self._queue.fail(error)
                    return
            jobs = self._queue.take(self._batch, self._hosts)
            if jobs:
                await self._work(jobs)

    async def close(self) -> None:
        """Kill the host."""
        host, self._host = self._host, None
        if host is not None:
            await host.kill()

    async def _work(self, jobs: list[Job]) -> None:
        host = self._host
        assert host is not None
        started = self._counters.begin(jobs[0].call, len(jobs))
        failed: list[tuple[Job, Failure]] = []

        def report(index: int, result: Any, failure: Failure | None) -> None:
            job = jobs[index]
            failure = failure or job.finish(result)
            if failure is not None:
                failed.append((job, failure))
            else:
                self._counters.finished(job.call)

        try:
            ended = await host.call(jobs[0].call, [job.item for job in jobs], report)
        except FormatError as error:
            ended = self._unsendable(jobs, error, failed)
        except BaseException:
            closed = HostError("the pool was closed", kind="crash", where=self._settings.where)
            for job in jobs:
                if not job.outcome.done():
                    job.outcome.set_exception(closed)
            raise
        finally:
            self._counters.end(started)
        for job, failure in failed:
            self._fail(job, failure)
        if ended.lost is not None:
            self._host = None
            self._fail(jobs[ended.finished], ended.lost)
            self._queue.put_back(jobs[ended.finished + 1 :])
        elif ended.recycle is not None:
            self._counters.recycle(ended.recycle)
            self._queue.put_back(jobs[ended.finished :])
            await self.close()

    def _unsendable(
        self, jobs: Sequence[Job], error: FormatError, failed: list[tuple[Job, Failure]]
    ) -> Ended:
        """A request that can't be written names no item: each is tried alone."""
        failed += [(job, Failure("protocol", error.what)) for job in jobs]
        return Ended(len(jobs))

    def _fail(self, job: Job, failure: Failure) -> None:
        self._counters.error(failure.kind)
        if self._queue.fail_once(job, failure):
            self._counters.retries += 1
