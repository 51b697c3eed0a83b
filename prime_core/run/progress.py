"""What the supervisor shows: one live line on a terminal, one line every so often elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from prime_core.run.following import Following

PLAIN_EVERY_S = 10.0
LIVE_EVERY_S = 0.5
QUIET_WAIT_S = 20.0  # shorter waits are the ordinary rhythm of an asynchronous run


def progress_line(following: Following, steps: int, elapsed_s: float) -> str:
    """Step, reward, tokens/s, lag, queue and idle share in one line."""
    parts = [f"step {following.step}/{steps}", f"{elapsed_s:.0f} s"]
    figures = (
        ("reward", following.mean("reward/mean"), "{:.3f}"),
        ("tokens/s", following.tokens_per_second(), "{:.0f}"),
        ("lag", following.mean("lag/mean"), "{:.1f}"),
        ("queue", _queue(following), "{:.0f}"),
        ("trainer idle", following.idle_share(), "{:.0%}"),
        ("mismatch", following.mean("mismatch/kl"), "{:.1e}"),
    )
    parts += [f"{name} {form.format(value)}" for name, value, form in figures if value is not None]
    return "  ".join(parts)


def _queue(following: Following) -> float | None:
    value = following.latest.get("intake", {}).get("intake/queue")
    return float(value) if isinstance(value, int | float) else None


class Progress:
    """Prints the run's progress until it is closed."""

    def __init__(self, steps: int, *, out: TextIO | None = None) -> None:
        """Args: steps of the run; where to print (stderr, so that --json stays alone)."""
        self._steps = steps
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._started = time.monotonic()
        self._shown = 0.0

    def say(self, text: str) -> None:
        """An event: always a line of its own."""
        clear = "\r\x1b[K" if self._live else ""
        print(f"{clear}{text}", file=self._out, flush=True)

    def update(self, following: Following, *, force: bool = False) -> None:
        """Show where the run is, not more often than is useful."""
        now = time.monotonic()
        if not force and now - self._shown < (LIVE_EVERY_S if self._live else PLAIN_EVERY_S):
            return
        self._shown = now
        line = progress_line(following, self._steps, now - self._started)
        waits = following.waiting(longer_than_s=QUIET_WAIT_S)
        if waits:
            line += "  [" + "; ".join(waits) + "]"
        if self._live:
            print(f"\r\x1b[K{line}", end="", file=self._out, flush=True)
        else:
            print(line, file=self._out, flush=True)

    def close(self) -> None:
        """End the live line."""
        if self._live:
            print(file=self._out, flush=True)
