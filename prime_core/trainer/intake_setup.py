"""Makes the intake's tools from a run config and the run's lock, task lists and plugins.

Called once when the process starts; whatever doesn't fit the lock fails here, before any judging.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import IntegrityError, RunError
from prime_core.api.protocols import GroupFilter
from prime_core.assignment import EnvironmentShare
from prime_core.store import layout
from prime_core.store.checks import Limits
from prime_core.store.counter import StepRules
from prime_core.store.metrics import MetricsLog
from prime_core.store.objects import ObjectStore, open_store
from prime_core.store.policy import read_seal
from prime_core.store.records import LIMIT, Lock, TaskList
from prime_core.store.trace import Trace
from prime_core.trainer.intake import IntakeTools
from prime_core.trainer.intake_judge import Assigner, Decode, Judge, OnlineFilter

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig
    from prime_core.hub import Hub, RunContext

PROCESS = "intake"


def open_tools(config: RunConfig) -> IntakeTools:
    """The tools of a prepared run.

    Raises:
        StoreError: no lock or task list: the directory isn't prepared.
        IntegrityError: lock, task lists and config don't belong together.
        PluginError, RunError: an online filter can't be made or filters tasks, not groups.
    """
    from prime_core.hub import Hub, RunContext

    store = open_store(config)
    lock = Lock.from_json(store.get(layout.LOCK, LIMIT), where=layout.LOCK)
    if config.run.id is not None and lock.run_id != config.run.id:
        raise IntegrityError(
            f"the lock is of run {lock.run_id}, the config of {config.run.id}",
            where=layout.LOCK,
            fix="use the run directory's own run.toml",
        )
    tasks = {choice.label: _task_list(store, choice.label, lock) for choice in config.environments}
    shares = [
        EnvironmentShare(choice.label, choice.weight, len(tasks[choice.label].indices))
        for choice in config.environments
    ]
    hub = Hub.discover(block=config.plugins.block)
    hub.start_observers(config)
    rules = StepRules.from_config(config)
    assigner = Assigner(lock.run_id, shares, tasks)
    judge = Judge(
        rules,
        limits_of(config, lock, tasks),
        max_groups=config.engine.groups_per_submission,
        group_size=config.trainer.group_size,
        assigner=assigner,
        seal_of=lru_cache(maxsize=None)(lambda version: read_seal(store, version)),
        filters=online_filters(config, hub, RunContext.from_environment(config.run.dir)),
        decode=_decoder(config) if config.plugins.observers or config.filters.online else None,
    )
    metrics = MetricsLog(config.run.dir, PROCESS)

    def log(step: int | None, values: dict[str, Any]) -> None:
        metrics.log(step, **values)

    def notify(hook: str, arguments: dict[str, object]) -> None:
        if failures := hub.notify(hook, **arguments):
            metrics.log(None, **{"intake/observer_failures": failures})

    trace = Trace(config.run.dir, PROCESS)
    return IntakeTools(store, lock.run_id, rules, judge, assigner, log, notify, trace)


def limits_of(config: RunConfig, lock: Lock, tasks: dict[str, TaskList]) -> Limits:
    """What rows and file metadata of the run's submissions must say."""
    engine = config.engine
    return Limits(
        run_id=lock.run_id,
        lock_digest=lock.digest,
        engine_fingerprint=lock.engine_fingerprint,
        temperature=engine.temperature,
        token_limits={name: limits.max_tokens for name, limits in engine.classes.items()},
        default_token_limit=engine.max_tokens,
        max_prompt_tokens=engine.max_prompt_tokens,
        max_turns=engine.max_turns,
        score_ranges={label: tasks[label].score_range for label in tasks},
        vocabulary=_vocabulary(config.run.dir / layout.MODEL / "config.json"),
        node_class=engine.node_class,
    )


def _vocabulary(settings: Path) -> int:
    """Rows of the model's embedding; IntegrityError where the model's config doesn't say."""
    try:
        found = json.loads(settings.read_text(encoding="utf-8"))
        return int(found.get("text_config", found)["vocab_size"])  # several modalities: nested
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(
            "the model's config names no vocab_size, so token ids can't be checked",
            where=str(settings),
            fix="restore the run's model directory; a run never changes it",
        ) from error


def online_filters(config: RunConfig, hub: Hub, context: RunContext) -> list[OnlineFilter]:
    """The config's online filters, in order.

    Raises:
        PluginError: one can't be made.
        RunError: one filters tasks only.
    """
    filters = []
    for choice in config.filters.online:
        made = hub.make("data_filter", choice, context)
        if not isinstance(made, GroupFilter):
            raise RunError(
                f"data filter {choice.use} has no keep_group: it filters tasks, not groups",
                where="filters.online",
                fix="move it to [[filters.offline]]",
            )
        record = hub.find("data_filter", choice.use, choice.version)
        filters.append(OnlineFilter(choice.use, record.distribution, made))
    return filters


def _task_list(store: ObjectStore, label: str, lock: Lock) -> TaskList:
    path = layout.tasks_path(label)
    tasks = TaskList.from_json(store.get(path, LIMIT), where=path)
    if lock.task_digests.get(label) != tasks.digest:
        raise IntegrityError(
            f"task list {label} isn't the one that the lock names",
            where=path,
            fix="restore it from a copy of the run; a run never changes its tasks",
        )
    return tasks


def _decoder(config: RunConfig) -> Decode | None:
    """Decodes with the run's own tokenizer; None for a model directory that has no fast one."""
    path = config.run.dir / layout.MODEL / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda token_ids: str(tokenizer.decode(list(token_ids), skip_special_tokens=True))
