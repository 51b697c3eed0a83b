"""Checkpoints of the trainer with torch.distributed.checkpoint, and the way back from one.

`train.py` saves after publishing and loads once at its start. A checkpoint's directory appears by
a rename, whole and with its marker; the same batches after it give the same bits as without it.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save

from prime_core.api.errors import RunError
from prime_core.store.layout import CHECKPOINTS, checkpoint_dir, parse_numbered
from prime_core.trainer.fsdp import World, barrier
from prime_core.trainer.grpo import Optimization
from prime_core.trainer.model import PolicyModel

MARKER = "complete.json"


def save_checkpoint(
    run_dir: Path, step: int, policy: PolicyModel, opt: Optimization, world: World, keep: int
) -> None:
    """Write the state before `step` trains, then remove all but the newest `keep`. Collective.

    Raises:
        RunError: it can't be written; the checkpoints before it stay.
    """
    target = run_dir / checkpoint_dir(step)
    temporary = target.with_name(f".{target.name}")
    try:
        if world.leads:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
        barrier(world)
        _quietly(dcp_save, _state(policy, opt), temporary)
        (temporary / f"rng-{world.rank}.bin").write_bytes(torch.get_rng_state().numpy().tobytes())
        barrier(world)
        if world.leads:
            marker = {"step": step, "optimizer_steps": opt.steps_done, "ranks": world.size}
            (temporary / MARKER).write_text(json.dumps(marker))
            if target.exists():  # a step that a resumed trainer has trained again
                _remove(target)
            temporary.rename(target)
            for old in checkpoints(run_dir)[:-keep]:
                _remove(run_dir / checkpoint_dir(old))
        barrier(world)
    except (OSError, CheckpointException) as error:
        raise RunError(
            f"the checkpoint can't be written: {_cause(error)}",
            where=str(target),
            fix="free disk space and check that it's writable, then resume with --resume",
        ) from error


def _cause(error: BaseException) -> str:
    """The first rank's own error: a CheckpointException's text is a page of tracebacks."""
    if isinstance(error, CheckpointException):
        error = next((found for found, _ in error.failures.values()), error)
    return str(error).strip().partition("\n")[0]


def checkpoints(run_dir: Path) -> list[int]:
    """Steps of the complete checkpoints, ascending."""
    found = (run_dir / CHECKPOINTS).glob(f"*/{MARKER}")
    steps = (parse_numbered(marker.parent.name) for marker in found)
    return sorted(step for step in steps if step is not None)


def load_newest(run_dir: Path, policy: PolicyModel, opt: Optimization, world: World) -> int:
    """Restore the newest complete checkpoint in place; the step it stands before, 0 for none.

    Another number of ranks than wrote it will do. Collective.

    Raises:
        RunError: the checkpoint can't be read.
    """
    steps = checkpoints(run_dir)
    if not steps:
        return 0
    source = run_dir / checkpoint_dir(steps[-1])
    state = _state(policy, opt)
    try:
        marker = json.loads((source / MARKER).read_text())
        _quietly(dcp_load, state, source)
    except (OSError, ValueError, KeyError, CheckpointException) as error:
        raise RunError(
            f"the checkpoint can't be read: {error}",
            where=str(source),
            fix="remove this directory; the trainer then resumes from the one before",
        ) from error
    set_state_dict(
        policy,
        opt.optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )
    rng = source / f"rng-{world.rank}.bin"
    if rng.exists():
        torch.set_rng_state(torch.frombuffer(bytearray(rng.read_bytes()), dtype=torch.uint8))
    opt.steps_done = int(marker["optimizer_steps"])
    return steps[-1]


def _state(policy: PolicyModel, opt: Optimization) -> dict[str, Any]:
    model, optimizer = get_state_dict(policy, opt.optimizer)
    return {"model": model, "optimizer": optimizer}


def _quietly(act: Any, state: dict[str, Any], directory: Path) -> None:
    with warnings.catch_warnings():  # of torch's own calls, about torch's own deprecations
        warnings.simplefilter("ignore")
        act(state, checkpoint_id=directory)


def _remove(directory: Path) -> None:
    """Remove a checkpoint; its marker first, so that a killed removal leaves no complete one."""
    (directory / MARKER).unlink(missing_ok=True)
    shutil.rmtree(directory)
