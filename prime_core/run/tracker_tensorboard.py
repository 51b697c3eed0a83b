"""The tracker `tensorboard`: metrics as event files that TensorBoard shows.

Found through the entry point `tracker.tensorboard`; used by the trainer. Nothing of TensorBoard is
imported before a run selects it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from prime_core.api import Context, Params, PluginError, TrackerSpec, hookimpl


class TensorboardParams(Params):
    """Where the event files go."""

    dir: Path | None = Field(
        None, description="directory of the event files; default is tensorboard/ in the run's"
    )
    flush_s: float = Field(10.0, gt=0, description="seconds between writes to disk")


class TensorboardTracker:
    """Writes scalars; each start of a run adds an event file, which TensorBoard joins by step."""

    def __init__(self, folder: Path, flush_s: float) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        folder.mkdir(parents=True, exist_ok=True)
        self._writer: Any = EventFileWriter(str(folder), flush_secs=flush_s)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of one step."""
        values = [
            self._summary.Value(tag=name, simple_value=float(value))
            for name, value in metrics.items()
        ]
        self._writer.add_event(
            self._event(wall_time=time.time(), step=step, summary=self._summary(value=values))
        )

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()


def make(params: TensorboardParams, context: Context) -> TensorboardTracker:
    """Open an event file.

    Raises:
        PluginError: TensorBoard isn't installed, or there is neither `dir` nor a run directory.
    """
    folder = params.dir
    if folder is None:
        if context.run_dir is None:
            raise PluginError(
                "outside a run there is no directory for the event files",
                plugin="tracker.tensorboard",
                distribution="prime-core",
                phase="configured",
                fix="set dir in the tracker's with = {...}",
            )
        folder = context.run_dir / "tensorboard"
    try:
        return TensorboardTracker(folder, params.flush_s)
    except ImportError as error:
        raise PluginError(
            f"TensorBoard can't be imported: {error}",
            plugin="tracker.tensorboard",
            distribution="prime-core",
            phase="configured",
            fix="pip install 'prime-core[tensorboard]'",
        ) from error


@hookimpl
def prime_trackers() -> list[TrackerSpec]:
    """Register the tracker."""
    return [
        TrackerSpec(
            name="tensorboard",
            params=TensorboardParams,
            factory=make,
            summary="Metrics as TensorBoard event files",
        )
    ]
