"""Pass rates of tasks under a reference model: measured, written, read.

`prime-core profile` writes `profiles/<environment>-<model digest>.parquet`; the preparation of a
run reads it for its offline filters. A profile that was interrupted goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import FormatError, RunError, TaskProfile
from prime_core.evaluation.journal import open_journal
from prime_core.evaluation.measuring import (
    Measuring,
    Model,
    engine_settings,
    results_of,
    sample_work,
)
from prime_core.evaluation.opening import open_pool
from prime_core.evaluation.running import Progress
from prime_core.evaluation.summary import summarise

if TYPE_CHECKING:
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
        with pq.ParquetFile(path) as source:
            table = source.read(use_threads=False)
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
    environment: EnvironmentChoice,
    model: Model,
    how: Measuring,
    progress: Progress = lambda done, total: None,
) -> tuple[Path, list[TaskProfile]]:
    """Measure pass rates and write the profile; blocks. Called again, it goes on.

    A completion passes with the environment's highest score. Tasks of which no completion could be
    scored have 0 attempts and are left out.

    Args:
        model: with the digest that names the file.
        how: its `out` is the directory of profiles.
        progress: called with completions done and completions in all.

    Raises:
        RunError: another process is at it, or an endpoint gave requests up.
        PrimeError: the engine or the environment fails.
    """
    how.out.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_profile(config, environment, model, how, progress))


async def _profile(
    config: RunConfig,
    environment: EnvironmentChoice,
    model: Model,
    how: Measuring,
    progress: Progress,
) -> tuple[Path, list[TaskProfile]]:
    path = profile_path(how.out, environment.label, model.digest)
    async with AsyncExitStack() as stack:
        pool = await open_pool(config, environment, stack, run_dir=None)
        work = sample_work(config, environment, pool, model, how)
        settings = ProfileSettings(
            environment=environment.label,
            params=json.dumps(dict(pool.description.params), sort_keys=True),
            dataset_digest=pool.description.info.dataset_digest,
            model_digest=model.digest,
            samples=how.sampling.samples,
            temperature=how.sampling.temperature,
            max_tokens=config.engine.token_limit(config.engine.node_class),
            seed=how.sampling.seed,
        )
        head = {
            **work.order.identity,
            **engine_settings(config),
            **json.loads(settings.to_json()),
            "indices": list(work.indices),
        }
        # Numbers of other settings can't be mixed with ours, and nobody asked to keep them.
        journal = open_journal(path.with_suffix(".partial.jsonl"), head, replace=True)
        try:
            left = await work.run(journal, pool, model, how, progress)
            if left.count:
                raise RunError(
                    f"{left.count} requests were given up: {left.reasons.most_common(1)[0][0]}",
                    where="[engine]",
                    fix="run the same command again to ask for them alone",
                )
        except BaseException:
            journal.close()
            raise
        lines = summarise(results_of(journal), pool.description.info.score_range).tasks
    profiles = [
        TaskProfile(line.task, line.passes / line.scored, line.scored, line.passes)
        for line in lines
        if line.scored
    ]
    write_profile(path, settings, profiles)
    journal.remove()
    return path, profiles


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
