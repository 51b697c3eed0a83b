"""A real `prime-core serve` process on a tiny model, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prime_core.engines.tiny_model import build_tiny_model


def tiny_model(directory: Path) -> Path:
    """A peaked random policy, so that greedy and sampled completions differ."""
    return build_tiny_model(directory, initializer_range=0.2)


@contextmanager
def serving(model: Path, *options: str) -> Iterator[str]:
    """The root URL of a server of its own, which is stopped as a person would stop it."""
    command = [sys.executable, "-m", "prime_core", "serve", "--model", str(model), "--port", "0"]
    with subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("serving "):
                break
        else:
            raise AssertionError("".join(said))
        try:
            yield line.split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            assert process.wait() == 0, rest
            assert "Traceback" not in rest, rest
