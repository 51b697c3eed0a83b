"""The tracker `wandb`: metrics to Weights & Biases, or to its local files when offline.

Found through the entry point `tracker.wandb`; used by the trainer. The API key comes from wandb's
own login or environment, never from a run config.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from prime_core.api import Context, Params, PluginError, TrackerSpec, hookimpl

ID_FILE = "wandb-id"


class WandbParams(Params):
    """Where the metrics go."""

    project: str = Field("prime-core", min_length=1, description="project on Weights & Biases")
    entity: str | None = Field(None, description="team or user; default is wandb's own")
    name: str | None = Field(None, description="name shown; default is the run directory's")
    tags: tuple[str, ...] = Field((), description="tags of the run")
    mode: Literal["online", "offline"] = Field(
        "online", description="offline writes local files, for `wandb sync` later"
    )


class WandbTracker:
    """Logs to one wandb run, which a resumed training run goes on with."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of one step."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Upload what is left."""
        self._run.finish()


def make(params: WandbParams, context: Context) -> WandbTracker:
    """Start or go on with the wandb run.

    Raises:
        PluginError: wandb isn't installed or refuses to start.
    """
    try:
        import wandb
    except ImportError as error:
        raise PluginError(
            f"wandb can't be imported: {error}",
            plugin="tracker.wandb",
            distribution="prime-core",
            phase="configured",
            fix="pip install 'prime-core[wandb]'",
        ) from error
    run_dir = context.run_dir
    try:
        run = wandb.init(
            project=params.project,
            entity=params.entity,
            name=params.name or (run_dir.name if run_dir else None),
            tags=list(params.tags),
            mode="offline" if context.offline else params.mode,
            dir=str(run_dir) if run_dir else None,
            id=_wandb_id(run_dir) if run_dir else None,
            resume="allow",
        )
    except wandb.errors.Error as error:
        raise PluginError(
            f"wandb refused to start: {error}",
            plugin="tracker.wandb",
            distribution="prime-core",
            phase="configured",
            fix="run `wandb login`, or set mode = 'offline'",
        ) from error
    return WandbTracker(run)


def _wandb_id(run_dir: Path) -> str:
    """The id of the run directory's wandb run: drawn at the first start, kept for the next."""
    path = run_dir / ID_FILE
    try:
        with path.open("x", encoding="ascii") as stream:
            stream.write(uuid.uuid4().hex)
    except FileExistsError:
        pass  # a resumed run
    return path.read_text(encoding="ascii")


@hookimpl
def prime_trackers() -> list[TrackerSpec]:
    """Register the tracker."""
    return [
        TrackerSpec(
            name="wandb",
            params=WandbParams,
            factory=make,
            summary="Metrics to Weights & Biases",
        )
    ]
