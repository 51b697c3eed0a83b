"""The host's end of a zygote's control channel: messages out with open files, plain numbers back.

Used by `zygotes.py` and `session.py`. Invariant: what comes back is parsed as ASCII numbers of a
known count, and the files that a child wrote are read up to their limit.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prime_core.api.errors import FormatError

REPLY_SIZE = 512
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class JailLost(Exception):
    """The zygote is gone, or says what no zygote says."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the zygote saw of one child.

    Attributes:
        status: wait status of the child.
        reason: 0 it ended by itself, 1 its CPU time was used up, 2 we said stop.
        cpu_seconds: of all processes.
        wall_seconds: until the last one was reaped.
        peak_memory: bytes.
        processes: how many were reaped.
    """

    status: int
    reason: int
    cpu_seconds: float
    wall_seconds: float
    peak_memory: int
    processes: int


class Files:
    """The three files of one input: sealed input, output, errors. Closed by `close`."""

    def __init__(self, given: bytes) -> None:
        self.given = os.memfd_create("given", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.output = os.memfd_create("output", os.MFD_CLOEXEC)
        self.errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        view = memoryview(given)
        while view:
            view = view[os.write(self.given, view) :]
        os.lseek(self.given, 0, os.SEEK_SET)
        fcntl.fcntl(self.given, fcntl.F_ADD_SEALS, SEALS)

    @property
    def all(self) -> tuple[int, int, int]:
        """In the order that the zygote expects."""
        return self.given, self.output, self.errors

    def sizes(self) -> tuple[int, int]:
        """Bytes of output and errors."""
        return os.fstat(self.output).st_size, os.fstat(self.errors).st_size

    def read_output(self, limit: int) -> bytes:
        """The output from its beginning."""
        return os.pread(self.output, limit, 0)

    def read_errors(self, limit: int) -> bytes:
        """The end of the errors."""
        return os.pread(self.errors, limit, max(0, os.fstat(self.errors).st_size - limit))

    def close(self) -> None:
        """Give the memory back."""
        for descriptor in self.all:
            os.close(descriptor)


class Channel:
    """A connected SOCK_SEQPACKET pair's end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._poller = select.poll()
        self._poller.register(end, select.POLLIN)

    def send(self, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send one message.

        Raises:
            JailLost: nobody is there.
        """
        try:
            socket.send_fds(self._end, [marshal.dumps(dict(message))], list(descriptors))
        except OSError as error:
            raise JailLost(str(error)) from error

    def receive(self, timeout: float) -> bytes | None:
        """The next message, or None when none came in `timeout` seconds.

        Raises:
            JailLost: the other end is closed.
        """
        if not self._poller.poll(max(0, int(timeout * 1000) + 1)):
            return None
        try:
            data = self._end.recv(REPLY_SIZE)
        except OSError as error:
            raise JailLost(str(error)) from error
        if not data:
            raise JailLost("the zygote ended")
        return data

    def close(self) -> None:
        """Close our end; a zygote that still lives ends then, with all below it."""
        self._end.close()


def read_reply(data: bytes) -> Reply:
    """The numbers of a `done` message.

    Raises:
        FormatError: it isn't one.
    """
    fields = data.split(b" ")
    if len(fields) != 7 or fields[0] != b"done" or not all(f.isdigit() for f in fields[1:]):
        raise FormatError("the zygote sent something else than numbers")
    status, reason, cpu, wall, peak, processes = (int(field) for field in fields[1:])
    return Reply(status, reason, cpu / 1e6, wall / 1e6, peak << 10, processes)
