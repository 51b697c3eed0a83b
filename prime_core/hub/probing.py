"""Starts one probe process per plugin and reads its answer; the parent's side of the doctor.

The answer comes over a pipe of its own, one JSON object a line, so that what a plugin prints is
never taken for one. A probe that ends without an answer is an answer too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """What a probe is asked to try; `params` None leaves the configuration out.

    `distribution` "" lets the probe's own hub find the plugin, as in another interpreter.
    """

    kind: str
    name: str
    distribution: str = ""
    version: str = ""
    params: Mapping[str, Any] | None = None
    block: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """How far a plugin came.

    Attributes:
        phase: the phase reached, or failed in.
        cause: why it failed; "" where it didn't.
        fix, command: what to do; "" leaves it to the reader.
        distribution, installed_version, module: of the plugin in the probe's interpreter.
    """

    phase: str
    cause: str = ""
    fix: str = ""
    command: str = ""
    distribution: str = ""
    installed_version: str = ""
    module: str = ""


@dataclass(slots=True)
class _Heard:
    """The lines of a probe: the last phase it began, and its answer."""

    phase: str = "found"
    answer: Answer | None = None
    identity: dict[str, str] = field(default_factory=dict)


def run_probe(request: Request, *, timeout_s: float, python: Path | None = None) -> Answer:
    """Try one plugin in a process of its own.

    Args:
        timeout_s: the process is killed after this many seconds.
        python: its interpreter; None for this one. That one must have prime-core too.
    """
    reading, writing = os.pipe()
    command = [str(python or sys.executable), "-P", "-m", "prime_core.hub.probe", str(writing)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(writing,),
            start_new_session=True,  # what the plugin starts must not outlive a kill unseen
        )
    except OSError as error:
        os.close(reading)
        return Answer(
            "found",
            cause=f"its interpreter {command[0]} can't be started: {error.strerror}",
            fix="make its environment, or correct `python` in the run config",
            command=f"prime-core env create {request.name}",
        )
    finally:
        os.close(writing)
    payload = json.dumps(asdict(request), default=str).encode()
    timed_out = False
    with os.fdopen(reading, "rb") as answers:
        try:
            _, errors = process.communicate(payload, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, 9)
            _, errors = process.communicate()
        heard = _hear(answers)
    if heard.answer is not None:
        return heard.answer
    cause = (
        f"it didn't end within {timeout_s:g} s"
        if timed_out
        else _ending(process.returncode, errors)
    )
    return Answer(heard.phase, cause=f"while it was being {heard.phase}, {cause}", **heard.identity)


def _hear(answers: Any) -> _Heard:
    """Read whole lines only: a probe may die in the middle of one."""
    os.set_blocking(answers.fileno(), False)  # a grandchild may still hold the writing end
    heard = _Heard()
    for line in (answers.read() or b"").splitlines(keepends=True):
        if not line.endswith(b"\n"):
            continue
        message = json.loads(line)
        if "begin" in message:
            heard.phase = message["begin"]
        elif "identity" in message:
            heard.identity = message["identity"]
        else:
            heard.answer = Answer(**message["answer"])
    return heard


def _ending(code: int, errors: bytes) -> str:
    """How the process ended, with the last line it wrote to stderr."""
    how = f"the process was killed by signal {-code}" if code < 0 else f"it ended with code {code}"
    lines = errors.decode(errors="replace").strip().splitlines()
    return f"{how}: {lines[-1].strip()}" if lines else how
