"""The child process as the engine sees it: started, spoken to, waited for, ended.

Used by `driver` alone. A child that is gone is an `EngineError` that names its log.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prime_core.api import EngineError
from prime_core.engines.vllm.last_words import explain
from prime_core.engines.vllm.link import Link

# vLLM phones home, and takes a fraction of the machine's memory for its cache, unless told.
_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # One process a child: vLLM's own engine process adds a hop and outlives a killed parent.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # The newer model runner, which vLLM prefers on GPUs, knows no processor of logits like ours.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    # A forked worker would hold our pipes open after its parent's death.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
_TAIL_BYTES = 8000

Message = tuple[dict[str, Any], list[bytes]]


class ChildGone(EngineError):  # what happened, not a kind of error of ours
    """vLLM's process ended, or said nothing for too long."""


class Child:
    """One vLLM process.

    Args:
        python: its interpreter.
        log: what it prints goes there.
        environment: added to this process' own.
        deliver: called in a thread of the child's with each message, and with None at its end.
    """

    def __init__(
        self,
        python: Path | None,
        log: Path,
        environment: Mapping[str, str],
        deliver: Callable[[Message | None], None],
    ) -> None:
        self._log = log
        self._deliver = deliver
        to_child, from_engine = os.pipe()
        from_child, to_engine = os.pipe()
        command = [str(python or sys.executable), "-m", "prime_core.engines.vllm.child"]
        command += [str(to_child), str(to_engine), str(os.getpid())]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            try:
                self._process = subprocess.Popen(
                    command,
                    pass_fds=(to_child, to_engine),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **_ENVIRONMENT, **environment},
                )
            except OSError as error:
                for descriptor in (from_engine, from_child):
                    os.close(descriptor)
                raise EngineError(
                    f"vLLM's process can't be started: {error.strerror}",
                    where=str(command[0]),
                    fix="set the engine's `python` to an interpreter that has vLLM and prime-core",
                ) from error
            finally:
                for descriptor in (to_child, to_engine):
                    os.close(descriptor)
        self._link = Link(from_child, from_engine)
        self._outbox: queue.SimpleQueue[tuple[str, Sequence[bytes], dict[str, Any]] | None] = (
            queue.SimpleQueue()
        )
        self._reader = threading.Thread(target=self._read, name="vllm messages", daemon=True)
        self._writer = threading.Thread(target=self._write, name="vllm requests", daemon=True)
        self._reader.start()
        self._writer.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, kind: str, blobs: Sequence[bytes] = (), **fields: Any) -> None:
        """Send a message; returns at once, as a child that hangs doesn't read.

        Where it is gone, `deliver` says so.
        """
        self._outbox.put((kind, blobs, fields))

    def gone(self, what: str = "") -> ChildGone:
        """The error that says how it ended; `what` where we ended it."""
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()  # it closed its pipe and lives on: nobody would end it
        ended, fix = explain(self._process.returncode, self._tail())
        return ChildGone(
            f"vLLM's process {self._process.pid} {what or ended}",
            where=str(self._log),
            fix="read the end of that log" if what else fix,
        )

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def close(self, limit_s: float = 20.0) -> None:
        """Ask it to end, and end it where it doesn't."""
        self.send("close")
        try:
            self._process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()
        self._writer.join()

    def _read(self) -> None:
        try:
            while True:
                self._deliver(self._link.receive())
        except (EOFError, OSError, ValueError):
            self._outbox.put(None)
            self._link.close()
            self._deliver(None)

    def _write(self) -> None:
        # A broken pipe: the reader says that the child is gone.
        with contextlib.suppress(OSError):
            while (message := self._outbox.get()) is not None:
                kind, blobs, fields = message
                self._link.send(kind, blobs, **fields)

    def _tail(self) -> str:
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return log.read().decode(errors="replace")
        except OSError:
            return ""
