"""`prime-core train`: claims the directory, prepares it, starts the processes, sees them through.

The supervisor holds no state of the run: everything stands in the run directory, so it may be
killed at any instant and started again with --resume. It imports neither torch nor a plugin of the
hosts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.run import claiming
from prime_core.run.children import Child, Children
from prime_core.run.following import Following
from prime_core.run.lifeline import RoleLock
from prime_core.run.preparing import (
    TRAINING,
    Interrupted,
    check_installed,
    make_directory,
    run_preparation,
)
from prime_core.run.progress import Progress
from prime_core.run.tree import tree
from prime_core.store.layout import LOGS, RUN

if TYPE_CHECKING:
    from prime_core.config.load import LoadedConfig
    from prime_core.config.sections import RunConfig

POLL_S = 0.1


def claim(loaded: LoadedConfig, *, resume: bool) -> LoadedConfig:
    """Take the run directory and write the resolved config into it.

    Returns the config that the processes will read: the run's directory absolute, its id fixed.

    Raises:
        RunError: the directory is used (or unused with --resume), or the config is another run's.
    """
    from prime_core.config.load import load
    from prime_core.config.resolved import write_resolved

    absolute = loaded.absolute()
    run_dir = loaded.config.run.dir.resolve()
    claiming.check_directory(run_dir, resume=resume)
    run_id = loaded.config.run.id or claiming.new_run_id()
    if resume:
        old = load(run_dir / RUN, check_files=False).config
        claiming.check_same_run(old, absolute.config)
        run_id = old.run.id or run_id
    run = absolute.config.run.model_copy(update={"dir": run_dir, "id": run_id})
    claimed = replace(absolute, config=absolute.config.model_copy(update={"run": run}))
    make_directory(run_dir)
    write_resolved(claimed, run_dir / RUN)
    return claimed


def roles(config: RunConfig) -> list[Child]:
    """The processes that the config names on this machine."""
    run_toml = str(config.run.dir / RUN)
    logs = config.run.dir / LOGS
    mine = ["--supervisor", str(os.getpid())]
    workers = [
        Child(
            f"worker-{index}",
            ["worker", run_toml, "--node", f"worker-{index}", *mine],
            logs / f"worker-{index}.log",
            threads=config.engine.threads,
        )
        for index in range(config.engine.workers)
    ]
    return [
        Child(
            "trainer", ["trainer", run_toml, *mine], logs / "trainer.log", config.trainer.threads
        ),
        Child("intake", ["intake", run_toml, *mine], logs / "intake.log"),
        *tree(config),
        *_validators(config, run_toml, mine),
        *workers,
    ]


def _validators(config: RunConfig, run_toml: str, mine: list[str]) -> list[Child]:
    """The local validators; none in a run that takes no verdicts."""
    if config.run.trust == "none":
        return []
    return [
        Child(
            f"validator-{index}",
            ["validator", run_toml, "--index", str(index), *mine],
            config.run.dir / LOGS / f"validator-{index}.log",
            threads=config.engine.threads,
        )
        for index in range(config.validation.processes)
    ]


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list instead of dying at once; a second one is default."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.signal(number, signal.SIG_DFL)

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def see_through(
    children: Children,
    following: Following,
    progress: Progress,
    stops: list[int],
    out_of_time: Callable[[], bool] = lambda: False,
) -> bool:
    """Watch until every process ended well (True) or the run is out of time (False).

    Raises:
        Interrupted: a stop was asked for.
        RunError: a process died again and again.
    """
    while children.running() or children.restarting():
        if out_of_time():
            return False
        for event in children.watch():
            progress.say(event)
        following.read()
        progress.update(following)
        if stops:
            raise Interrupted(
                f"stopped by {signal.Signals(stops[0]).name} after step {following.step}",
                fix="go on with --resume",
            )
        time.sleep(POLL_S)
    return True


def time_limit(config: RunConfig, deadline: float | None) -> Callable[[], bool]:
    """Whether the deadline has come and a trained version is sealed, with which the run can end.

    A step's metrics come before its version is sealed, so that they don't tell.
    """
    from prime_core.store.objects import open_store
    from prime_core.store.policy import sealed_versions

    if deadline is None:
        return lambda: False
    store = open_store(config)
    return lambda: time.monotonic() > deadline and max(sealed_versions(store), default=0) > 0


def cut_short(config: RunConfig, progress: Progress) -> RunConfig:
    """Make the newest sealed version the run's last one, so that the run is over and balanced.

    The batches that were closed beyond it are given up: their rollouts end as surplus.
    """
    from prime_core.config.load import load
    from prime_core.config.resolved import write_resolved
    from prime_core.store.objects import open_store
    from prime_core.store.policy import sealed_versions

    steps = max(sealed_versions(open_store(config)))
    progress.say(f"time is up: the run ends with step {steps}")
    run_toml = config.run.dir / RUN
    shorter = load(run_toml, (f"trainer.steps={steps}",), check_files=False)
    write_resolved(shorter, run_toml)
    return shorter.config


def supervise(
    loaded: LoadedConfig, *, resume: bool, deadline: float | None = None
) -> dict[str, Any]:
    """Run a config to its end; returns the summary that `--json` prints.

    Args:
        deadline: of `time.monotonic`; the run is cut short then, after at least one step.

    Raises:
        RunError: the run can't start, go on, or was stopped.
    """
    started = time.monotonic()
    check_installed("train", TRAINING)
    claiming.check_directory(loaded.config.run.dir, resume=resume)
    make_directory(loaded.config.run.dir)
    run_dir = loaded.config.run.dir.resolve()
    # The lock first: whoever claims the directory of a run that runs would rewrite its config.
    with RoleLock(run_dir, "supervisor", patience_s=0.0), stop_signals() as stops:
        config = claim(loaded, resume=resume).config
        progress = Progress(config.trainer.steps)
        run_preparation(config, progress, stops)
        _notify_started(config)
        children = Children()
        following = Following(config.run.dir)
        try:
            for child in roles(config):
                children.add(child)
            if not see_through(children, following, progress, stops, time_limit(config, deadline)):
                children.stop()
                config = cut_short(config, progress)
                # Every role sees that the run is over; the intake writes the last outcomes.
                for child in roles(config):
                    children.add(child)
                see_through(children, following, progress, stops)
        finally:
            children.stop()
            following.read()
            progress.update(following, force=True)
            progress.close()
        evaluations = evaluate_run(config, progress)
    return _summary(config, children, time.monotonic() - started, evaluations)


def _notify_started(config: RunConfig) -> None:
    from prime_core.hub import Hub

    hub = Hub.discover(block=config.plugins.block)
    hub.start_observers(config)


def versions_to_evaluate(config: RunConfig) -> list[int]:
    """Version 0, every `eval.every`-th, and the last."""
    last = config.trainer.steps
    every = config.eval.every
    middle = range(every, last, every) if every else range(0)
    return sorted({0, *middle, last})


def evaluate_run(config: RunConfig, progress: Progress) -> dict[int, dict[str, Any]]:
    """Evaluate the run's policies on held-out tasks, one process each; by version."""
    if not config.eval.environments:
        return {}
    results = {}
    for version in versions_to_evaluate(config):
        progress.say(f"evaluating version {version} on {config.eval.tasks} held-out tasks")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "prime_core", "eval", str(config.run.dir)),
                *("--version", str(version), "--json"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RunError(
                f"version {version} can't be evaluated:\n{done.stderr.strip()[-3000:]}",
                fix=f"prime-core eval {config.run.dir} --version {version}",
            )
        results[version] = json.loads(done.stdout.splitlines()[-1])
    return results


def _summary(
    config: RunConfig, children: Children, seconds: float, evaluations: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    from prime_core.run.report import report
    from prime_core.store.trace import merge_trace

    trace = merge_trace(config.run.dir)
    return {
        "run": str(config.run.dir),
        "seconds": round(seconds, 1),
        "restarts": children.restarts(),
        "trace": str(trace),
        "evaluations": {str(version): found for version, found in evaluations.items()},
        **report(config.run.dir).as_json(),
    }


def run_directory(path: Path) -> Path:
    """The run directory that a person named, directly or by its run.toml; RunError if neither."""
    found = path.parent if path.name == RUN else path
    if not (found / RUN).is_file():
        raise RunError("no run.toml there", where=str(path), fix="name a run's directory")
    return found
