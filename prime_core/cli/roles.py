"""`prime-core trainer | intake | validator | worker`: one process of a prepared run each.

The supervisor starts them; a person may too, with the run directory's `run.toml`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

RUN_TOML = click.argument(
    "run_toml", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RUN/run.toml"
)
SUPERVISOR = click.option(
    "--supervisor", type=int, default=None, help="Pid to die with; set by `prime-core train`."
)


def _play(
    run_toml: Path, supervisor: int | None, role: str, play: Callable[[RunConfig], Any]
) -> None:
    """Load the resolved config, take the role's lock, play it."""
    import logging

    from prime_core.config.load import load_run
    from prime_core.run.lifeline import RoleLock, die_with_parent

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    die_with_parent(supervisor)
    config = load_run(run_toml)
    with RoleLock(config.run.dir, role):
        play(config)


@click.command()
@RUN_TOML
@SUPERVISOR
def trainer(run_toml: Path, supervisor: int | None) -> None:
    """Train the batches of a prepared run and publish its policies."""
    import os

    from prime_core.trainer import train

    # Every rank of one torchrun is the same trainer: each holds a lock of its own.
    rank = os.environ.get("RANK", "0")
    _play(run_toml, supervisor, "trainer" if rank == "0" else f"trainer-rank-{rank}", train.run)


@click.command()
@RUN_TOML
@SUPERVISOR
def intake(run_toml: Path, supervisor: int | None) -> None:
    """Judge submissions, close steps, and write outcomes."""
    from prime_core.trainer import intake as intake_process

    _play(run_toml, supervisor, "intake", intake_process.run)


@click.command()
@RUN_TOML
@click.option("--index", type=int, default=0, help="Which of the run's local validators.")
@SUPERVISOR
def validator(run_toml: Path, index: int, supervisor: int | None) -> None:
    """Judge submissions by the sanity checks and sign verdicts."""
    import signal

    from prime_core.validation import validator as validator_process

    # an orderly end, so that the file at hand isn't counted as one that killed its judge
    signal.signal(signal.SIGTERM, _stop)
    name = f"validator-{index}"
    _play(run_toml, supervisor, name, lambda config: validator_process.run(config, index))


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


@click.command()
@RUN_TOML
@click.option("--node", required=True, help="Name of this node, e.g. worker-0.")
@SUPERVISOR
def worker(run_toml: Path, node: str, supervisor: int | None) -> None:
    """Generate, score and submit rollouts."""
    from prime_core.rollout import worker as worker_process

    _play(run_toml, supervisor, node, lambda config: worker_process.run(config, node))
