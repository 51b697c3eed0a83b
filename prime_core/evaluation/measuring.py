"""Measures a model on an environment's tasks: `prime-core eval ENV --model DIR | --endpoint URL`.

Samples, scores and reports, in one directory that holds the journal too. Invariant: completions of
a local model depend on the settings alone, so a run that was killed and went on reports the same.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.evaluation.journal import Journal, open_journal
from prime_core.evaluation.judged import Judged
from prime_core.evaluation.opening import open_pool
from prime_core.evaluation.orders import Order, dump, identity
from prime_core.evaluation.placing import is_ray, make_crew, worker_count
from prime_core.evaluation.report_files import Report, write_report
from prime_core.evaluation.running import Left, Progress, run_order
from prime_core.evaluation.sampling import CHUNK_ROLLOUTS, Sampling, spread
from prime_core.evaluation.summary import summarise
from prime_core.evaluation.units import Unit, cut
from prime_core.hosting import wire

if TYPE_CHECKING:
    from prime_core.api import Instruction, PolicyFiles
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.hosting.pool import HostPool

JOURNAL = "journal.jsonl"
LOCAL_DEPTH = 2  # one unit is generated while another is scored
# Parameters of endpoints that change no answer; a run may go on with others.
HOW_ONLY = (
    "api_key", "concurrency", "retries", "timeout_s", "backoff_s", "max_backoff_s",
    "price_prompt", "price_completion",
)  # fmt: skip
ENDPOINT_NOTE = (
    "The model answered through an endpoint. Nothing proves which weights and settings made these "
    "answers: there are no token ids, log-probabilities or proofs, seeds are only wishes, and "
    "another run gives other answers. Token counts are the server's own."
)


@dataclass(frozen=True, slots=True)
class Model:
    """What is measured.

    Attributes:
        name: what reports call it.
        policy: None for a model behind an endpoint.
        digest: of the model's directory; "" for endpoints.
    """

    name: str
    policy: PolicyFiles | None
    digest: str


@dataclass(frozen=True, slots=True)
class Measuring:
    """How it is measured.

    Attributes:
        tasks: at most this many, evenly spread; None for all.
        budget: the length budget's target and instruction; None without.
        out: directory of journal and report.
        on, workers, ks, pass_mark: as `ScoreSettings`.
    """

    sampling: Sampling
    tasks: int | None
    out: Path
    budget: tuple[int, Instruction] | None = None
    on: str = "local"
    workers: int | None = None
    ks: Sequence[int] = ()
    pass_mark: float | None = None


def measure(
    config: RunConfig,
    environment: EnvironmentChoice,
    model: Model,
    how: Measuring,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Measure and write the report; blocks. Called again, it goes on where it stopped.

    Raises:
        RunError: the directory holds results of other settings, or is in use.
        EngineError: the engine fails, or no request to an endpoint can succeed.
        PrimeError: the environment can't be opened.
    """
    return asyncio.run(_measure(config, environment, model, how, progress))


async def _measure(
    config: RunConfig,
    environment: EnvironmentChoice,
    model: Model,
    how: Measuring,
    progress: Progress,
) -> Report:
    async with AsyncExitStack() as stack:
        pool = await open_pool(config, environment, stack, run_dir=None)
        work = sample_work(config, environment, pool, model, how)
        head = _head(config, environment.label, work, how)
        journal = open_journal(how.out / JOURNAL, head)
        stack.callback(journal.close)
        left = await work.run(journal, pool, model, how, progress)
        report = _report(head, model, how, journal, left, pool.description.info.score_range)
        write_report(how.out, report, results_of(journal))
    return report


@dataclass(frozen=True, slots=True)
class SampleOrder:
    """An order of samples with its units.

    Attributes:
        indices: of the tasks.
        size: completions of one unit. Whole chunks for an engine here, whose bits depend on what
            is generated together; single ones at an endpoint, where each costs money.
        workers: on Ray.
    """

    order: Order
    indices: Sequence[int]
    samples: int
    size: int
    workers: int

    @property
    def total(self) -> int:
        """Completions in all."""
        return len(self.indices) * self.samples

    def units(self) -> Iterator[Unit]:
        """All units, in order."""
        items = ([index, sample] for index in self.indices for sample in range(self.samples))
        return (Unit(number, found) for number, found in cut(items, self.size))

    async def run(
        self, journal: Journal, pool: HostPool, model: Model, how: Measuring, progress: Progress
    ) -> Left:
        """Do what the journal lacks."""
        crew = make_crew(how.on, self.workers, pool, model.policy)
        return await run_order(self.order, self.units(), self.total, journal, crew, progress)


def sample_work(
    config: RunConfig, environment: EnvironmentChoice, pool: HostPool, model: Model, how: Measuring
) -> SampleOrder:
    """The order for a model's samples, cut for where they are made.

    Raises:
        RunError: `how.on` is no place, or no cluster is there.
    """
    ray = is_ray(how.on)
    workers = worker_count(how.on, how.workers) if ray else 1
    samples = how.sampling.samples
    plain = dump(config)
    if model.policy is not None:
        if not config.model.path.startswith("package:"):  # a worker may stand elsewhere
            plain["model"]["path"] = str(Path(config.model.path).expanduser().absolute())
        size, depth = max(1, CHUNK_ROLLOUTS // samples) * samples, LOCAL_DEPTH
    else:
        params = plain["engine"]["with"]
        # The bound is on the endpoint, not on each worker.
        asked = int(params.get("concurrency", 8))
        workers = min(workers, asked)
        params["concurrency"] = depth = asked // workers
        size = 1
    instruction = None if how.budget is None else wire.instruction_json(how.budget[1])
    order = Order(
        kind="sample",
        environment=dump(environment),
        hosting=dump(config.hosting),
        block=list(config.plugins.block),
        identity=identity(pool.description),
        depth=depth,
        config=plain,
        model_digest=model.digest,
        sampling=asdict(how.sampling),
        instruction=instruction,
    )
    indices = spread(pool.description.task_count, how.tasks)
    return SampleOrder(order, indices, samples, size, workers)


def results_of(journal: Journal) -> Iterator[Judged]:
    """Every judged completion, in order."""
    return (Judged.from_json(found) for found in journal.results())


def engine_settings(config: RunConfig) -> dict[str, Any]:
    """What completions depend on besides tasks, model and sampling."""
    engine = config.engine
    return {
        "engine": engine.use,
        "engine_with": {
            name: value for name, value in engine.params.items() if name not in HOW_ONLY
        },
        "dtype": config.model.dtype,
        "threads": engine.threads,
        "max_tokens": engine.token_limit(engine.node_class),
        "max_prompt_tokens": engine.max_prompt_tokens,
        "max_turns": engine.max_turns,
    }


def _head(config: RunConfig, label: str, work: SampleOrder, how: Measuring) -> dict[str, Any]:
    order = work.order
    return {
        "kind": "eval",
        "environment": label,
        **order.identity,
        "model": order.model_digest or config.engine.params.get("model", ""),
        **engine_settings(config),
        **asdict(how.sampling),
        "length_budget": None if how.budget is None else how.budget[0],
        "instruction": order.instruction,
        "measured_tasks": len(work.indices),
        "indices": hashlib.sha256(str(list(work.indices)).encode()).hexdigest(),
        "unit": work.size,
    }


def _report(
    head: Mapping[str, Any],
    model: Model,
    how: Measuring,
    journal: Journal,
    left: Left,
    score_range: tuple[float, float],
) -> Report:
    target = None if how.budget is None else how.budget[0]
    summary = summarise(
        results_of(journal),
        score_range,
        ks=how.ks,
        pass_mark=how.pass_mark,
        target=target,
        left=left.reasons,
    )
    notes = [ENDPOINT_NOTE] if model.policy is None else []
    if left.count:
        notes.append(
            f"{left.count} requests were given up and are missing here; run the same command "
            "again to ask for them alone."
        )
    asked = "" if target is None else f", asked to think for {target:,} tokens"
    sampling = how.sampling
    return Report(
        kind="eval",
        title=f"{model.name} on {head['environment']}",
        lead=f"{len(summary.tasks):,} tasks, {sampling.samples} completions each at temperature "
        f"{sampling.temperature:g}, at most {head['max_tokens']:,} tokens{asked}",
        settings=head,
        score_range=score_range,
        summary=summary,
        notes=notes,
    )


def length_budget(config: RunConfig, target: int) -> tuple[int, Instruction]:
    """The instruction that asks for `target` tokens, by the config's plugin or by `discrete`.

    Raises:
        PluginError: no such plugin is installed.
        RunError: the plugin can't ask for that many.
    """
    from pydantic import ValidationError

    from prime_core.config.sections import PluginChoice
    from prime_core.hub import Hub, RunContext

    choice = config.length_budget or PluginChoice.model_validate(
        {"use": "discrete", "with": {"targets": [target]}}
    )
    hub = Hub.discover(block=config.plugins.block)
    try:
        budget = hub.make("length_budget", choice, RunContext.from_environment())
        return target, budget.instruction(target)
    except (ValidationError, ValueError) as error:
        raise RunError(
            f"length budget {choice.use} can't ask for {target} tokens: {error}",
            where="--length-budget",
            fix="give a positive number of tokens",
        ) from error
