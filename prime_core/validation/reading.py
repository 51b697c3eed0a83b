"""Decodes nobody's bytes: first in a process that can be killed, then, if that lived, here.

The validator's check `schema` calls it through the context. Whatever the bytes are, a call ends in
a submission or a `FormatError`; none decodes to more than the run's largest honest file may.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import asdict
from types import TracebackType
from typing import Any

from prime_core.api.errors import FormatError, HostError
from prime_core.store.submission import Bounds, Submission, read_submission

START_LIMIT_S = 120.0
WALL_FACTOR = 10  # a busy machine gives a process a tenth of a core at worst, or it counts as hung
WALL_SLACK_S = 30.0


class Reader:
    """One reading process, started when it's needed and replaced when it dies.

    Args:
        bounds: of the run's files; None for the format's own.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, data: bytes, *, time_limit_s: float, memory_mb: int) -> Submission:
        """Decode a submission.

        Raises:
            FormatError: the bytes break the format, or decoding them a limit.
            HostError: the reading process can't be started.
        """
        answer = self._ask(data, time_limit_s, memory_mb)
        if answer is None:  # once more: the process may have died of something else
            answer = self._ask(data, time_limit_s, memory_mb)
        if answer is None:
            raise FormatError(
                "decoding it ended the reading process: it breaks a limit of time or memory",
                fix="refuse the file",
            )
        if "error" in answer:
            raise FormatError(str(answer["error"]), where=answer.get("where"))
        return read_submission(data, bounds=self._bounds)

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process = None

    def __enter__(self) -> Reader:
        """The reader itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _ask(self, data: bytes, time_limit_s: float, memory_mb: int) -> dict[str, Any] | None:
        """The answer, or None where the process died or was killed over it."""
        process = self._started()
        assert process.stdin is not None
        request = {
            "size": len(data),
            "cpu_s": time_limit_s,
            "memory_mb": memory_mb,
            "bounds": self._bounds and asdict(self._bounds),
        }
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
        except OSError:
            self.close()
            return None
        answer = self._line(WALL_FACTOR * time_limit_s + WALL_SLACK_S)
        if answer is None:
            self.close()
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "prime_core.validation.reader"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1", **_paths()},
        )
        if self._line(START_LIMIT_S) is None:
            self.close()
            raise HostError(
                "the reading process doesn't start",
                kind="crash",
                where="python -m prime_core.validation.reader",
                fix="run that command; it says what is missing",
            )
        return self._process

    def _line(self, limit_s: float) -> dict[str, Any] | None:
        """One line of JSON within so many seconds; None otherwise."""
        assert self._process is not None
        assert self._process.stdout is not None
        stream, deadline, line = self._process.stdout, time.monotonic() + limit_s, b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(stream.fileno(), 65536) if ready else b""
            if not part:
                return None
            line += part
        answer: dict[str, Any] = json.loads(line)
        return answer


def _paths() -> dict[str, str]:
    """Where Python finds its packages, where that isn't where it always does."""
    return {key: os.environ[key] for key in ("PYTHONPATH", "VIRTUAL_ENV") if key in os.environ}
