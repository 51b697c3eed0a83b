"""Hosts that were started alike, and the calls to them: what every kind of pool is built on.

`HostPool` and `VerifierPool` inherit it and add their own calls. Invariant: every call ends, with a
value or a `Failure` for each item, and after `close` no process of the pool is left.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from prime_core.api.errors import FormatError, HostError
from prime_core.config.sections import HostingSection
from prime_core.hosting.channel import Failure
from prime_core.hosting.counters import Counters
from prime_core.hosting.settings import HostSettings
from prime_core.hosting.slot import Slot
from prime_core.hosting.work import TRIES, WorkQueue

QUEUE_BATCHES = 4  # batches per host that may wait before callers do

Own = TypeVar("Own", bound="Hosts")
T = TypeVar("T")


class Hosts:
    """Host processes with one queue of work. Made by `_opened` and used within one event loop."""

    same: ClassVar[tuple[str, ...]] = ()  # what every host of a pool must describe alike

    def __init__(
        self,
        settings: HostSettings,
        hosting: HostingSection,
        run_dir: Path | None,
        log_dir: Path | None,
    ) -> None:
        self._temporary = log_dir is None and run_dir is None
        if log_dir is None:
            log_dir = (
                Path(tempfile.mkdtemp(prefix="prime-hosts-"))
                if run_dir is None
                else run_dir / "logs"
            )
        log_dir.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        self._log_dir = log_dir
        self._counters = Counters(hosting.hosts)
        self._queue = WorkQueue(QUEUE_BATCHES * hosting.hosts * hosting.batch)
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", settings.label)
        self._slots = [
            Slot(
                settings,
                log_dir / f"host-{stem}-{os.getpid()}-{number}.log",
                self._queue,
                self._counters,
                batch=hosting.batch,
                hosts=hosting.hosts,
            )
            for number in range(hosting.hosts)
        ]
        self._running: list[asyncio.Task[None]] = []
        self._closed = False

    async def _opened(self: Own) -> Own:
        """Start the first host, read its description; close everything where that fails."""
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise
        return self

    async def _start(self) -> None:
        described = await self._slots[0].start(full=True)
        try:
            self._read_description(described)
        except FormatError as error:
            raise HostError(
                f"the {self._settings.kind} describes itself wrongly: {error.what}",
                kind="value",
                where=self._settings.where,
                fix=f"correct the {self._settings.kind}'s info",
            ) from error
        expected = {key: described[key] for key in self.same}
        for slot in self._slots:
            slot.expected = expected
            task = asyncio.create_task(slot.run())
            task.add_done_callback(self._slot_ended)
            self._running.append(task)

    def _read_description(self, described: dict[str, Any]) -> None:
        """Keep what the first host says of itself, or raise `FormatError`."""

    def _slot_ended(self, task: asyncio.Task[None]) -> None:
        """A mistake of our own in a slot must end the calls, not leave them waiting."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            failed = HostError(
                f"the pool failed: {type(error).__name__}: {error}",
                kind="protocol",
                where=self._settings.where,
                fix="report this as a bug of prime-core",
            )
            failed.__cause__ = error
            self._queue.fail(failed)

    async def __aenter__(self: Own) -> Own:
        """The pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Kill all hosts and what they started; calls in progress end with `HostError`."""
        if self._closed:
            return
        self._closed = True
        self._queue.fail(HostError("the pool is closed", kind="crash", where=self._settings.where))
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.gather(*(slot.close() for slot in self._slots))
        if self._temporary:
            shutil.rmtree(self._log_dir, ignore_errors=True)

    def metrics(self) -> dict[str, float]:
        """Counts since `open`, queue length, busy share of the hosts, scores per second."""
        return self._counters.metrics(len(self._queue))

    @property
    def recycle_reasons(self) -> dict[str, int]:
        """Why hosts were replaced after a call, with counts."""
        return dict(self._counters.recycled)

    async def _call(self, call: str, items: Sequence[Any], read: Callable[[Any], T]) -> list[T]:
        found: list[T] = []
        for number, outcome in enumerate(await self._outcomes(call, items, read)):
            if isinstance(outcome, Failure):
                raise HostError(
                    f"{call} failed {TRIES} times for item {number} of {len(items)} "
                    f"({outcome.kind}): {outcome.detail}",
                    kind=outcome.kind,
                    where=f"{self._settings.where}{f', {outcome.where}' if outcome.where else ''}",
                    fix=outcome.fix or f"read the host's log in {self._log_dir}",
                )
            found.append(outcome)
        return found

    async def _outcomes(
        self, call: str, items: Sequence[Any], read: Callable[[Any], T]
    ) -> list[T | Failure]:
        return await self._queue.submit(call, items, read)
