"""The supervisor's child processes: start, watch, restart, stop.

A child runs in a session of its own, so that Ctrl-C reaches the supervisor alone, which then stops
the children in order. A child that dies is started again after a growing pause; one that dies too
often ends the run, with the first cause named.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_core.api.errors import RunError

TAIL_BYTES = 4000


@dataclass
class Child:
    """One role process and its restarts.

    Attributes:
        name: role name, e.g. trainer or worker-0; also the log's name.
        arguments: the `prime-core` arguments that start it.
        threads: torch threads (OMP_NUM_THREADS) of the process.
        service: serves the others and ends with them; nobody waits for it.
        exits: exit codes of earlier lives, in order.
    """

    name: str
    arguments: Sequence[str]
    log: Path
    threads: int = 1
    service: bool = False
    process: subprocess.Popen[bytes] | None = None
    exits: list[int] = field(default_factory=list)
    started: float = 0.0
    not_before: float = 0.0

    def start(self) -> None:
        """Start the process, its output appended to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        # Two threads a process stall where cores are shared: each takes its own from the config.
        environment["OMP_NUM_THREADS"] = str(self.threads)
        environment["MKL_NUM_THREADS"] = str(self.threads)
        environment.setdefault("HF_HUB_OFFLINE", "1")
        environment.setdefault("TOKENIZERS_PARALLELISM", "false")
        environment["PYTHONUNBUFFERED"] = "1"
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "prime_core", *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        self.started = time.monotonic()

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def tail(self) -> str:
        """The last lines of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - TAIL_BYTES))
            return stream.read().decode(errors="replace").strip()

    def signal_group(self, number: int) -> None:
        """Send a signal to the process and whatever it started in its session."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class Children:
    """All children of one run."""

    def __init__(self, *, max_restarts: int = 5, calm_s: float = 60.0) -> None:
        """Args: lives a child may lose in a row; seconds of life after which it counts as calm."""
        self._children: dict[str, Child] = {}
        self._max_restarts = max_restarts
        self._calm_s = calm_s
        self._strikes: dict[str, int] = {}

    def add(self, child: Child) -> None:
        """Start a child and watch it from now on."""
        self._children[child.name] = child
        self._strikes[child.name] = 0
        child.start()

    def __getitem__(self, name: str) -> Child:
        """The child of that name."""
        return self._children[name]

    def running(self) -> list[str]:
        """Names of the children that live, without services."""
        return [
            name for name, child in self._children.items() if child.running and not child.service
        ]

    def restarting(self) -> list[str]:
        """Names of the children that died and wait to be started again, without services."""
        return [
            name
            for name, child in self._children.items()
            if not child.service
            and not child.running
            and not (child.exits and child.exits[-1] == 0)
        ]

    def restarts(self) -> int:
        """Lives lost so far."""
        return sum(sum(code != 0 for code in child.exits) for child in self._children.values())

    def watch(self) -> list[str]:
        """Notice deaths, restart what died; returns one line per event.

        Raises RunError where a child dies again and again, with the end of its log.
        """
        events = []
        now = time.monotonic()
        for name, child in self._children.items():
            if child.process is not None and (code := child.process.poll()) is not None:
                child.exits.append(code)
                child.signal_group(signal.SIGKILL)  # whatever it left behind in its session
                child.process = None
                if code == 0:
                    continue
                calm = now - child.started > self._calm_s
                self._strikes[name] = 1 if calm else self._strikes[name] + 1
                if self._strikes[name] > self._max_restarts or code == 2:
                    raise self._given_up(child, code)
                pause = min(0.25 * 2 ** (self._strikes[name] - 1), 10.0)
                child.not_before = now + pause
                events.append(f"{name} {describe_exit(code)}; restarting in {pause:.1f} s")
            if child.process is None and child.exits[-1] != 0 and now >= child.not_before:
                child.start()
        return events

    def _given_up(self, child: Child, code: int) -> RunError:
        times = f"{len(child.exits)} times" if len(child.exits) > 1 else "once"
        return RunError(
            f"{child.name} {describe_exit(code)} ({times}); the end of its log:\n{child.tail()}",
            where=str(child.log),
            fix="mend the cause and start the run again with --resume",
        )

    def stop(self, *, grace_s: float = 15.0) -> None:
        """Ask every child to stop, workers first, then end what didn't."""
        order = sorted(self._children.values(), key=lambda c: not c.name.startswith("worker"))
        for child in order:
            if child.running:
                assert child.process is not None
                with contextlib.suppress(ProcessLookupError):
                    child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        for child in order:
            if child.process is None:
                continue
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.signal_group(signal.SIGKILL)
                child.process.wait()
            child.signal_group(signal.SIGKILL)


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
