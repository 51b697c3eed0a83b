"""Makes a run directory: the resolved config, the model, the filtered task lists, the lock.

`claim` is called by the supervisor and imports nothing heavy; `main` runs in a process of its own,
because the model and the tokenizer need torch's world. `lock.json` is written last, so a directory
without one is known to be unfinished and is prepared again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import PrimeError, RunError
from prime_core.api.protocols import TaskFilter
from prime_core.api.types import Task, TaskProfile
from prime_core.run.golds import TASKS_A_CALL, usable_golds
from prime_core.run.placing import DIGEST, place_model
from prime_core.store.layout import KEYS, LOCK, MODEL, RUN, tasks_path

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.hosting.description import HostedPlugin
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import Hub, RunContext
    from prime_core.store.records import TaskList

RUN_ID_BYTES = 8
LOCKS = "locks"  # of `prime_core.run.lifeline`; taken before a directory is claimed

# Keys whose change doesn't make a resumed run another run: limits of this machine and its display.
RESUMABLE = (
    "run.dir",
    "trainer.steps",
    "trainer.checkpoint_every",
    "trainer.keep_checkpoints",
    "trainer.threads",
    "engine.workers",
    "eval",
    "hosting",
    "trackers",
    "plugins.observers",
    "store.keep_policies",
)


def is_prepared(run_dir: Path) -> bool:
    """Whether the directory holds a run that can start."""
    return (run_dir / LOCK).is_file()


def check_directory(run_dir: Path, *, resume: bool) -> None:
    """Refuse a used directory without --resume, and --resume without a run.

    Raises:
        RunError: as said.
    """
    used = run_dir.is_dir() and any(entry.name != LOCKS for entry in run_dir.iterdir())
    if used and not resume:
        raise RunError(
            "the run directory isn't empty",
            where=str(run_dir),
            fix="go on with --resume, or choose another with --set run.dir=...",
        )
    if resume and not (run_dir / RUN).is_file():
        raise RunError(
            "there is no run to resume",
            where=str(run_dir),
            fix="leave --resume out to start one, or check run.dir",
        )


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys whose values differ, those of `RESUMABLE` left out."""
    for key in sorted(old.keys() | new.keys()):
        name = f"{prefix}{key}"
        if name in RESUMABLE or old.get(key) == new.get(key):
            continue
        if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
            yield from differences(old[key], new[key], f"{name}.")
        else:
            yield name


def check_same_run(old: RunConfig, new: RunConfig) -> None:
    """Refuse to resume with a config that would make it another run.

    Raises:
        RunError: names every key that differs.
    """
    mine, theirs = (config.model_dump(mode="json", by_alias=True) for config in (old, new))
    if theirs["run"]["id"] is None:
        theirs["run"]["id"] = mine["run"]["id"]
    changed = list(differences(mine, theirs))
    if changed:
        raise RunError(
            f"the config differs from the run's own in {', '.join(changed)}",
            where=str(old.run.dir / RUN),
            fix="give the values that the run started with, or start a new run",
        )


def config_digest(config: RunConfig) -> str:
    """SHA-256 (hex) of what the config decides: all of it but `RESUMABLE`, wherever it lies."""
    values = config.model_dump(mode="json", by_alias=True)
    for key in RESUMABLE:
        *sections, last = key.split(".")
        place = values
        for section in sections:
            place = place[section]
        del place[last]
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def new_run_id() -> str:
    """A random run id."""
    return secrets.token_hex(RUN_ID_BYTES)


# --- the heavy part, in a process of its own ---------------------------------------------------


@dataclass(frozen=True)
class Filtered:
    """What the offline filters left of an environment's tasks.

    Attributes:
        kept: (index, task id) pairs, ascending.
        dropped: reasons and how many tasks each took.
    """

    kept: tuple[tuple[int, str], ...]
    dropped: Counter[str]


def apply_filters(
    tasks: Sequence[tuple[int, Task]],
    filters: Sequence[tuple[str, TaskFilter]],
    profile: dict[str, TaskProfile],
) -> Filtered:
    """Ask every filter, in the config's order, about every task; the first refusal counts."""
    kept: list[tuple[int, str]] = []
    dropped: Counter[str] = Counter()
    for index, task in tasks:
        for name, task_filter in filters:
            decision = task_filter.keep_task(task, profile.get(task.id))
            if not decision.keep:
                dropped[f"{name}: {decision.reason}"] += 1
                break
        else:
            kept.append((index, task.id))
    return Filtered(tuple(kept), dropped)


async def list_tasks(
    config: RunConfig, environment: EnvironmentChoice, hub: Hub, context: RunContext
) -> tuple[TaskList, dict[str, str], Sequence[HostedPlugin]]:
    """The environment's filtered task list, the distributions of its interpreter, its plugins.

    Raises:
        RunError: nothing is left.
        PrimeError: the environment or a filter fails.
    """
    from prime_core.hosting.pool import HostPool
    from prime_core.store.records import TaskList

    pool = await HostPool.open(
        environment,
        config.reward,
        config.hosting,
        cache_dir=context.cache_dir,
        run_dir=context.run_dir,
        block=config.plugins.block,
    )
    try:
        described = pool.description
        for note in described.notes:
            print(f"{environment.label}: {note}")  # noqa: T201
        tasks = [pair async for pair in _all_tasks(pool, described.task_count)]
        filters = _task_filters(config, hub, context)
        found = apply_filters(tasks, filters, _profile(config, environment))
        for reason, count in found.dropped.most_common():
            print(f"{environment.label}: {count} tasks dropped by {reason}")  # noqa: T201
        kept = await usable_golds(pool, environment, found.kept)
    finally:
        await pool.close()
    if not kept:
        raise RunError(
            f"no task of environment {environment.label} is left",
            where=f"environments, {environment.label}",
            fix="widen the offline filters, or profile the environment with the model of this run",
        )
    listed = TaskList.build(
        environment.label,
        described.info.dataset_digest,
        described.task_count,
        [index for index, _ in kept],
        [task_id for _, task_id in kept],
        described.info.score_range,
    )
    return listed, dict(described.distributions), described.plugins


async def _all_tasks(pool: HostPool, count: int) -> Any:
    for first in range(0, count, TASKS_A_CALL):
        indices = range(first, min(first + TASKS_A_CALL, count))
        for index, task in zip(indices, await pool.tasks(indices), strict=True):
            yield index, task


def _task_filters(config: RunConfig, hub: Hub, context: RunContext) -> list[tuple[str, TaskFilter]]:
    filters = []
    for choice in config.filters.offline:
        made = hub.make("data_filter", choice, context)
        if not isinstance(made, TaskFilter):
            raise RunError(
                f"data filter {choice.use} has no keep_task: it filters groups, not tasks",
                where="filters.offline",
                fix="move it to [[filters.online]]",
            )
        filters.append((choice.use, made))
    return filters


def _profile(config: RunConfig, environment: EnvironmentChoice) -> dict[str, TaskProfile]:
    """Profiles by task id, where the config names a directory of them."""
    if config.filters.profiles is None:
        return {}
    from prime_core.evaluation.profiles import read_profile

    digest = (config.run.dir / MODEL / DIGEST).read_text().strip()
    return read_profile(config.filters.profiles, environment.label, digest)


def prepare(config: RunConfig) -> None:
    """Everything between a claimed directory and a run that can start; safe to repeat."""
    from prime_core.engines import open_engine
    from prime_core.hub import Hub, RunContext
    from prime_core.hub.selection import selections
    from prime_core.run.publications import hosted, locked
    from prime_core.signing import Signer
    from prime_core.store.objects import open_store
    from prime_core.store.records import Lock, LockedPlugin

    store = open_store(config)
    hub = Hub.discover(block=config.plugins.block)
    context = RunContext.from_environment(config.run.dir)
    (config.run.dir / KEYS).mkdir(mode=0o700, exist_ok=True)
    key = config.run.dir / KEYS / "trainer.key"
    if not key.exists():
        Signer.create(key)
    digest = place_model(config, context.cache_dir)
    lists, distributions, of_hosts = {}, {}, []
    for environment in config.environments:
        found, members, made = asyncio.run(list_tasks(config, environment, hub, context))
        of_hosts += hosted(made, environment.python)
        lists[environment.label], distributions[environment.label] = found, members
        if not store.exists(tasks_path(environment.label)):
            store.put(tasks_path(environment.label), found.to_json())
    engine = open_engine(config, hub, context)
    plugins = []
    for chosen in selections(config):
        if chosen.python is None:
            record = hub.find(chosen.kind, chosen.choice.use, chosen.choice.version)
            plugins.append(
                LockedPlugin(chosen.kind, chosen.choice.use, record.distribution, record.version)
            )
    lock = Lock(
        run_id=config.run.id or "",
        plugins=tuple(plugins),
        distributions=distributions,
        task_digests={label: found.digest for label, found in lists.items()},
        engine_fingerprint=engine.capabilities.fingerprint,
        seeds={"run": config.run.seed},
        model_digest=digest,
        config_digest=config_digest(config),
        publications=locked(hub, config, of_hosts),
    )
    engine.close()
    store.put(LOCK, lock.to_json())


def main(run_toml: Path, supervisor: int | None = None) -> int:
    """Prepare the run whose resolved config this is; prints what it drops, or one error.

    It dies with its supervisor: one that lived on would write beside the one of a resumed run.
    """
    from prime_core.config.load import load_run
    from prime_core.run.lifeline import RoleLock, die_with_parent

    try:
        die_with_parent(supervisor)
        with RoleLock(run_toml.parent, "preparation"):
            prepare(load_run(run_toml))
    except PrimeError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
