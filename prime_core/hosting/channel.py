"""The pool's end of a host's pipes: one call at a time, every item with a time limit.

Used by `prime_core.hosting.process`. Invariant: a call always ends, with the items that were
finished and, where the host was lost, the reason.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prime_core.api.errors import FormatError
from prime_core.hosting.protocol import ERROR_KINDS, Frames, encode

READ_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item, or the host that worked on it, failed. `kind` is one of `ERROR_KINDS`."""

    kind: str
    detail: str
    where: str | None = None
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended.

    Attributes:
        finished: items reported; the next one is to blame where `lost` is set.
        lost: why the host is of no use any more; None where it is.
        recycle: why the host asks to be replaced after it has delivered.
    """

    finished: int
    lost: Failure | None = None
    recycle: str | None = None


ItemReport = Callable[[int, Any, Failure | None], None]


class _Call:
    def __init__(self, number: int, count: int, limit: float, report: ItemReport) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.count = count
        self.limit = limit
        self.report = report
        self.finished = 0
        self.progress = loop.time()
        self.ended: asyncio.Future[Ended] = loop.create_future()


class Channel:
    """Requests out, responses in, over two non-blocking descriptors that it owns."""

    def __init__(self, requests: int, responses: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests = requests
        self._responses = responses
        self._frames = Frames()
        self._outgoing = memoryview(b"")
        self._call: _Call | None = None
        self._count = 0
        self._lost: Failure | None = None
        self._closed = False
        for descriptor in (requests, responses):
            os.set_blocking(descriptor, False)
        self._loop.add_reader(responses, self._readable)

    async def call(
        self, message: dict[str, Any], count: int, limit: float, report: ItemReport
    ) -> Ended:
        """Send a request of `count` items and wait for its end.

        Args:
            message: the request without its id.
            count: items in it.
            limit: seconds between two reports, after which the host counts as hanging.
            report: called with (index, result, failure) as each item is done.

        Raises:
            FormatError: the request can't be written.
        """
        assert self._call is None, "a host works on one call at a time"
        if self._lost is not None:
            return Ended(0, self._lost)
        self._count += 1
        data = encode({"id": self._count, **message})
        self._call = call = _Call(self._count, count, limit, report)
        self._timer = self._loop.call_later(limit, self._check_progress)
        self._outgoing = memoryview(data)
        self._writable()
        try:
            return await call.ended
        finally:
            self._timer.cancel()
            self._call = None

    def close(self) -> None:
        """Close both pipes; a call in progress ends as lost."""
        if self._closed:
            return
        self._closed = True
        self._lose(Failure("crash", "the pool closed the host"))
        self._loop.remove_reader(self._responses)
        self._loop.remove_writer(self._requests)
        os.close(self._requests)
        os.close(self._responses)

    def _lose(self, failure: Failure) -> None:
        if self._lost is None:
            self._lost = failure
        call = self._call
        if call is not None and not call.ended.done():
            call.ended.set_result(Ended(call.finished, self._lost))

    def _writable(self) -> None:
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[os.write(self._requests, self._outgoing) :]
        except BlockingIOError:
            self._loop.add_writer(self._requests, self._writable)
            return
        except OSError:
            self._outgoing = memoryview(b"")  # the reader learns of the host's end
        self._loop.remove_writer(self._requests)

    def _readable(self) -> None:
        try:
            data = os.read(self._responses, READ_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            data = b""
            self._lose(Failure("crash", f"the pipe broke: {error}"))
        if not data:
            self._loop.remove_reader(self._responses)
            self._lose(Failure("crash", "the host ended"))
            return
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except FormatError as error:
            self._lose(Failure("protocol", error.what))

    def _take(self, message: dict[str, Any]) -> None:
        call = self._call
        if call is None or call.ended.done() or message.get("id") != call.number:
            raise FormatError(f"the host sent an answer to call {message.get('id')!r} unasked")
        call.progress = self._loop.time()
        if message.get("done") is True:
            recycle = message.get("recycle")
            whole = call.finished == call.count or recycle is not None
            if not whole:
                raise FormatError(f"the host finished {call.finished} of {call.count} items")
            call.ended.set_result(Ended(call.finished, None, recycle and str(recycle)))
            return
        failure = read_failure(message["error"]) if "error" in message else None
        if "item" not in message:
            self._lose(failure or Failure("protocol", "the host sent neither item nor error"))
            return
        if message["item"] != call.finished or call.finished >= call.count:
            raise FormatError(f"the host sent item {message['item']!r} out of turn")
        call.finished += 1
        call.report(call.finished - 1, message.get("ok"), failure)

    def _check_progress(self) -> None:
        """Kill only what made no progress; our own loop may have slept through the reports."""
        call = self._call
        if call is None or call.ended.done():
            return
        self._readable()
        if call.ended.done():
            return
        left = call.progress + call.limit - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_progress)
        else:
            self._lose(Failure("timeout", f"no answer within {call.limit:g} s"))


def read_failure(value: object) -> Failure:
    """An error that a host reported."""
    if not isinstance(value, dict) or value.get("kind") not in ERROR_KINDS:
        raise FormatError("the host reported an error without a kind")
    where, fix = value.get("where"), value.get("fix")
    return Failure(
        value["kind"],
        str(value.get("detail")),
        None if where is None else str(where),
        None if fix is None else str(fix),
    )
