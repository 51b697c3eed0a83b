"""Mean scores of a policy on held-out tasks, with 95 % intervals.

Called by `prime-core eval`, which the supervisor runs for a run's first and last policy. The same
policy, tasks and seed give the same result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from prime_core.api import RunError
from prime_core.evaluation.interval import scaled_wilson
from prime_core.evaluation.opening import open_pool, open_sampler
from prime_core.evaluation.sampling import Sampled, Sampler, Sampling, spread
from prime_core.hosting.golds import held_out, to_standard_error

if TYPE_CHECKING:
    from pathlib import Path

    from prime_core.api import PolicyFiles
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.hosting.pool import HostPool


@dataclass(frozen=True, slots=True)
class Measured:
    """One environment under one way of sampling.

    Attributes:
        mean: of the tasks' mean scores; None where nothing could be scored.
        low, high: Wilson interval over tasks: samples of one task aren't independent.
        tasks: tasks that carry a score.
        unscored: completions that were abstained or failed to be judged.
        length: mean model tokens of a completion.
        truncated: share of completions that hit the token limit.
    """

    mean: float | None
    low: float
    high: float
    tasks: int
    completions: int
    unscored: int
    length: float
    truncated: float


@dataclass(frozen=True, slots=True)
class EvalResult:
    """A policy on its held-out tasks: by environment label, sampled and greedy.

    Attributes:
        greedy: empty where it wasn't asked for.
    """

    version: int
    sampled: dict[str, Measured]
    greedy: dict[str, Measured]

    def to_json(self) -> dict[str, Any]:
        """`sampled` and `greedy` are means over all tasks; details by environment."""
        return {
            "version": self.version,
            "sampled": overall(self.sampled),
            "greedy": overall(self.greedy),
            "tasks": sum(measured.tasks for measured in (self.sampled or self.greedy).values()),
            "environments": {
                label: {
                    name: asdict(group[label])
                    for name, group in (("sampled", self.sampled), ("greedy", self.greedy))
                    if label in group
                }
                for label in self.sampled or self.greedy
            },
        }


def overall(measured: dict[str, Measured]) -> float | None:
    """The mean over the tasks of all environments; None without any."""
    pairs = [(one.mean, one.tasks) for one in measured.values() if one.mean is not None]
    total = sum(tasks for _, tasks in pairs)
    return sum(mean * tasks for mean, tasks in pairs) / total if total else None


def evaluate(
    config: RunConfig,
    policy: PolicyFiles,
    environments: Sequence[EnvironmentChoice],
    *,
    tasks: int | None,
    samples: int = 1,
    temperature: float | None = None,
    greedy: bool = True,
    seed: int = 0,
    run_dir: Path | None = None,
) -> EvalResult:
    """Measure a policy; blocks.

    Args:
        config: engine, hosting and plugin settings.
        tasks: at most this many of each environment, evenly spread; None for all.
        samples: completions of each task when sampled; 0 for greedy alone.
        temperature: None for the config's.
        greedy: measure the most probable completion too.
        run_dir: for host logs; None outside a run.

    Raises:
        RunError: two environments have one label, or nothing is to be measured.
        PrimeError: the engine or an environment fails.
    """
    labels = [environment.label for environment in environments]
    if not labels or len(set(labels)) != len(labels) or not (samples or greedy):
        raise RunError(
            "nothing to evaluate" if not labels else f"labels {labels} aren't distinct",
            where="[eval]",
            fix="name at least one environment, and each differently",
        )
    ways = {
        "sampled": Sampling(samples, temperature or config.engine.temperature, seed),
        "greedy": Sampling(int(greedy), 0.0, seed),
    }
    found = asyncio.run(_evaluate(config, policy, environments, tasks, ways, run_dir))
    return EvalResult(policy.version, found["sampled"], found["greedy"])


async def _evaluate(
    config: RunConfig,
    policy: PolicyFiles,
    environments: Sequence[EnvironmentChoice],
    tasks: int | None,
    ways: dict[str, Sampling],
    run_dir: Path | None,
) -> dict[str, dict[str, Measured]]:
    found: dict[str, dict[str, Measured]] = {name: {} for name in ways}
    async with AsyncExitStack() as stack:
        sampler = await open_sampler(config, policy, stack, run_dir=run_dir)
        for environment in environments:
            pool = await open_pool(config, environment, stack, run_dir=run_dir)
            indices = spread(pool.description.task_count, tasks)
            indices = await held_out(pool, environment, indices, to_standard_error)
            for name, sampling in ways.items():
                if sampling.samples:
                    measured = await _measure(sampler, pool, indices, sampling)
                    found[name][environment.label] = measured
    return found


async def _measure(
    sampler: Sampler, pool: HostPool, indices: Sequence[int], sampling: Sampling
) -> Measured:
    results = [one async for one in sampler.sample(pool, indices, sampling)]
    return summarise(results, pool.description.info.score_range)


def summarise(results: Sequence[Sampled], score_range: tuple[float, float]) -> Measured:
    """The measurement of an environment from its tasks' completions."""
    means = [sum(one.values) / len(one.values) for one in results if one.values]
    mean = sum(means) / len(means) if means else None
    low, high = score_range if mean is None else scaled_wilson(mean, len(means), score_range)
    lengths = [length for one in results for length in one.lengths]
    completions = len(lengths)
    return Measured(
        mean=mean,
        low=low,
        high=high,
        tasks=len(means),
        completions=completions,
        unscored=completions - sum(len(one.values) for one in results),
        length=sum(lengths) / max(1, completions),
        truncated=sum(sum(one.truncated) for one in results) / max(1, completions),
    )
