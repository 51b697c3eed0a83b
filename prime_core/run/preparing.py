"""Starts the preparation of a run in a process of its own, and answers a stop meanwhile.

Called by the supervisor, which holds the directory's lock. Nothing heavy is imported here; the
process dies with the supervisor, so that no two of them prepare one directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api.errors import RunError
from prime_core.run import claiming
from prime_core.store.layout import LOGS, RUN

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig
    from prime_core.run.progress import Progress

POLL_S = 0.1
TRAINING = ("torch", "transformers", "safetensors", "tokenizers")  # of the extra `train`


class Interrupted(RunError):
    """The person pressed Ctrl-C (or the process got SIGTERM); the run can go on later."""


def check_installed(extra: str, modules: Sequence[str]) -> None:
    """Refuse to start without the packages of an extra; imports none of them.

    Raises:
        RunError: names what is missing and how to install it.
    """
    missing = [module for module in modules if not _is_there(module)]
    if missing:
        raise RunError(
            f"{', '.join(missing)} isn't installed",
            where="this Python's packages",
            fix=f"pip install 'prime-core[{extra}]'",
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def make_directory(run_dir: Path) -> None:
    """Make the run directory where it isn't there; RunError says why it can't be made."""
    try:
        run_dir.resolve().mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise RunError(
            f"the run directory can't be made: {reason}",
            where=str(run_dir),
            fix="choose another with --set run.dir=...",
        ) from error


def run_preparation(config: RunConfig, progress: Progress, stops: Sequence[int] = ()) -> None:
    """Prepare the run in a process of its own, unless it is prepared.

    Raises:
        Interrupted: a stop was asked for; a half-made preparation is made again by --resume.
        RunError: it failed.
    """
    run_dir = config.run.dir
    if claiming.is_prepared(run_dir):
        return
    progress.say("preparing the run: model, task lists, lock")
    command = ["-m", "prime_core.run.preparation", str(run_dir / RUN), str(os.getpid())]
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is the supervisor's to answer
    )
    out, err = _finish(process, stops)
    log = run_dir / LOGS / "preparation.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream:
        stream.write(out + err)
    for line in out.splitlines():
        progress.say(line)
    if process.returncode != 0:
        raise RunError(
            f"the run can't be prepared:\n{err.strip()[-3000:]}",
            where=str(log),
            fix="mend the cause and start again with --resume; where the config itself is wrong, "
            f"delete {run_dir} first: nothing has been generated yet",
        )


def _finish(process: subprocess.Popen[str], stops: Sequence[int]) -> tuple[str, str]:
    """What the process wrote until its end; it is killed, with its session, on a stop."""
    while True:
        if stops:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Interrupted(
                f"stopped by {signal.Signals(stops[0]).name} while the run was prepared",
                fix="go on with --resume",
            )
        try:
            return process.communicate(timeout=POLL_S)
        except subprocess.TimeoutExpired:
            continue
