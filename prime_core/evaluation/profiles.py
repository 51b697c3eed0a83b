"""Pass rates of tasks under a reference model: measured, written, read.

`prime-core profile` writes `profiles/<environment>-<model digest>.parquet`; the preparation of a
run reads it for its offline filters. A profile that was interrupted goes on task by task.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api import FormatError, RunError, TaskProfile
from prime_core.evaluation.sampling import Sampled, Sampling, open_pool, open_sampler, spread

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.config.sections import EnvironmentChoice, RunConfig

SCHEMA = "prime-core/profile/1"
DIGEST_CHARACTERS = 16  # of the model's digest, in the file's name; the whole is inside

# Bands of the INTELLECT-2 paper, inclusive; the data filter `pass_rate_band` has them as presets.
BANDS: Mapping[str, tuple[float, float]] = {
    "1/8-4/8": (1 / 8, 4 / 8),
    "<=6/8": (0.0, 6 / 8),
}


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """What a profile's numbers depend on; stands in the file."""

    environment: str
    params: str
    dataset_digest: str
    model_digest: str
    samples: int
    temperature: float
    max_tokens: int
    seed: int

    def to_json(self) -> str:
        """One line of JSON, sorted."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"schema": SCHEMA, **values}, sort_keys=True)


def profile_path(directory: Path, label: str, model_digest: str) -> Path:
    """`<label>-<first 16 hex digits of the model's digest>.parquet`."""
    return directory / f"{label}-{model_digest[:DIGEST_CHARACTERS]}.parquet"


def read_profile(directory: Path, label: str, model_digest: str) -> dict[str, TaskProfile]:
    """The profile of an environment under a model, by task id.

    Raises:
        RunError: there is none.
        FormatError: the file isn't a profile of that model.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = profile_path(directory, label, model_digest)
    if not path.is_file():
        raise RunError(
            f"environment {label} has no profile under model {model_digest[:DIGEST_CHARACTERS]}",
            where=str(path),
            fix=f"prime-core profile {label} --model MODEL -k 8 --out {directory}",
        )
    try:
        table = pq.read_table(path)
        settings = json.loads((table.schema.metadata or {})[b"prime_core"])
        rows = table.select(["task_id", "attempts", "passes", "pass_rate"]).to_pylist()
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise FormatError(
            f"not a profile: {error}", where=str(path), fix="remove it and profile again"
        ) from error
    if settings.get("schema") != SCHEMA or settings.get("model_digest") != model_digest:
        raise FormatError(
            "a profile of another schema or model", where=str(path), fix="profile again"
        )
    return {
        row["task_id"]: TaskProfile(
            row["task_id"], row["pass_rate"], row["attempts"], row["passes"]
        )
        for row in rows
    }


def write_profile(path: Path, settings: ProfileSettings, profiles: Sequence[TaskProfile]) -> None:
    """Write a profile under its name at once; an earlier one is replaced."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("task_id", pa.string()),
            ("attempts", pa.int32()),
            ("passes", pa.int32()),
            ("pass_rate", pa.float64()),
        ],
        metadata={"prime_core": settings.to_json()},
    )
    rows = [{name: getattr(one, name) for name in schema.names} for one in profiles]
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)
    temporary.replace(path)


def profile(
    config: RunConfig,
    policy: PolicyFiles,
    environment: EnvironmentChoice,
    *,
    model_digest: str,
    samples: int,
    tasks: int | None,
    out: Path,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Path, list[TaskProfile]]:
    """Measure pass rates and write the profile; blocks.

    A completion passes with the environment's highest score. Tasks of which no completion could be
    scored have 0 attempts and are left out.

    Args:
        model_digest: of the directory that the policy comes from.
        samples: completions of each task.
        tasks: at most this many, evenly spread; None for all.
        out: directory of profiles.
        progress: called with tasks done and tasks in all.
    """
    out.mkdir(parents=True, exist_ok=True)
    sampling = Sampling(samples, config.engine.temperature, seed)
    return asyncio.run(
        _profile(config, policy, environment, model_digest, sampling, tasks, out, progress)
    )


async def _profile(
    config: RunConfig,
    policy: PolicyFiles,
    environment: EnvironmentChoice,
    model_digest: str,
    sampling: Sampling,
    tasks: int | None,
    out: Path,
    progress: Callable[[int, int], None],
) -> tuple[Path, list[TaskProfile]]:
    path = profile_path(out, environment.label, model_digest)
    async with AsyncExitStack() as stack:
        pool = await open_pool(config, environment, stack, run_dir=None)
        info = pool.description.info
        settings = ProfileSettings(
            environment=environment.label,
            params=json.dumps(dict(pool.description.params), sort_keys=True),
            dataset_digest=info.dataset_digest,
            model_digest=model_digest,
            samples=sampling.samples,
            temperature=sampling.temperature,
            max_tokens=config.engine.token_limit(config.engine.node_class),
            seed=sampling.seed,
        )
        progress_file = _Progress(path.with_suffix(".partial.jsonl"), settings)
        indices = spread(pool.description.task_count, tasks)
        missing = [index for index in indices if index not in progress_file.done]
        progress(len(indices) - len(missing), len(indices))
        if missing:
            sampler = await open_sampler(config, policy, stack, run_dir=None)
            position = 0
            async for result in sampler.sample(pool, missing, sampling):
                progress_file.add(missing[position], _pass_rate(result, info.score_range[1]))
                position += 1
                progress(len(indices) - len(missing) + position, len(indices))
    measured = [progress_file.done[index] for index in indices]
    profiles = [one for one in measured if one.attempts]
    write_profile(path, settings, profiles)
    progress_file.remove()
    return path, profiles


def _pass_rate(result: Sampled, highest: float) -> TaskProfile:
    values = result.values
    passes = sum(value >= highest for value in values)
    return TaskProfile(result.task_id, passes / max(1, len(values)), len(values), passes)


class _Progress:
    """Finished tasks on disk, one JSON line each behind a line of settings."""

    def __init__(self, path: Path, settings: ProfileSettings) -> None:
        from prime_core.store.metrics import LineFile, read_lines

        self._path = path
        head: dict[str, Any] = json.loads(settings.to_json())
        lines = read_lines(path)
        if lines and lines[0] != head:
            path.unlink()  # of other settings: its numbers can't be mixed with ours
            lines = []
        self._file = LineFile(path)
        if not lines:
            self._file.append(head)
        self.done: dict[int, TaskProfile] = {
            line["index"]: TaskProfile(
                line["task_id"], line["pass_rate"], line["attempts"], line["passes"]
            )
            for line in lines[1:]
        }

    def add(self, index: int, found: TaskProfile) -> None:
        """Note a finished task."""
        self.done[index] = found
        self._file.append(
            {
                "index": index,
                "task_id": found.task_id,
                "pass_rate": found.pass_rate,
                "attempts": found.attempts,
                "passes": found.passes,
            }
        )

    def remove(self) -> None:
        """The profile is written: nothing is to be continued."""
        self._file.close()
        self._path.unlink()


def histogram(profiles: Sequence[TaskProfile], samples: int) -> list[int]:
    """Tasks by number of passes, 0..samples."""
    counts = [0] * (samples + 1)
    for one in profiles:
        counts[round(one.pass_rate * samples)] += 1
    return counts


def kept_by_band(profiles: Sequence[TaskProfile]) -> dict[str, int]:
    """How many tasks each of `BANDS` keeps."""
    return {
        name: sum(low <= one.pass_rate <= high for one in profiles)
        for name, (low, high) in BANDS.items()
    }
