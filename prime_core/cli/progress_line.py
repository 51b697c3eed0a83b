"""How far long work is, on standard error: one changing line on a terminal, few lines elsewhere."""

from __future__ import annotations

import sys
import time

import click

EVERY_S = 0.2  # between changes of the line
STEPS = 10  # lines where there is no terminal


class ProgressLine:
    """Called with items done and items in all; what an earlier process did counts for no rate."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._before: int | None = None
        self._shown_at = 0.0
        self._step = -1

    def __call__(self, done: int, total: int) -> None:
        """Show it, if it's time."""
        now = time.monotonic()
        if self._before is None:
            self._before, self._began = done, now
        step = STEPS * done // total if total else STEPS
        finished = done >= total
        if self._terminal:
            if now - self._shown_at < EVERY_S and not finished:
                return
            self._shown_at = now
            text = self._text(done, total, now)
            click.echo(f"\r\x1b[K{text}", nl=finished and step != self._step, err=True)
        elif step != self._step:
            click.echo(self._text(done, total, now), err=True)
        self._step = step

    def _text(self, done: int, total: int, now: float) -> str:
        assert self._before is not None
        text = f"{done:,} of {total:,} {self._noun}"
        rate = (done - self._before) / max(now - self._began, 1e-9)
        if rate <= 0 or done >= total:
            return text
        left = round((total - done) / rate)
        return f"{text}, {rate:.1f}/s, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
