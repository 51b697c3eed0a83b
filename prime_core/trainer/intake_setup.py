"""Makes the intake's tools from a run config and the run's lock, task lists and plugins.

Called once when the process starts; whatever doesn't fit the lock fails here, before any judging.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.api.protocols import GroupFilter
from prime_core.store import layout
from prime_core.store.assigner import Assigner
from prime_core.store.counter import StepRules
from prime_core.store.metrics import MetricsLog
from prime_core.store.objects import open_store
from prime_core.store.policy import read_seal
from prime_core.store.run_facts import (
    environment_shares,
    limits_of,
    read_lock,
    read_task_lists,
)
from prime_core.store.trace import Trace
from prime_core.trainer.intake import IntakeTools
from prime_core.trainer.intake_judge import Decode, Judge, OnlineFilter
from prime_core.trainer.intake_verdicts import VerdictGate

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
    lock = read_lock(config, store)
    tasks = read_task_lists(config, store, lock)
    shares = environment_shares(config, tasks)
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
    gate = VerdictGate.open(config, store, lock.run_id) if config.run.trust == "validate" else None
    return IntakeTools(store, lock.run_id, rules, judge, assigner, log, notify, trace, gate)


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


def _decoder(config: RunConfig) -> Decode | None:
    """Decodes with the run's own tokenizer; None for a model directory that has no fast one."""
    path = config.run.dir / layout.MODEL / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda token_ids: str(tokenizer.decode(list(token_ids), skip_special_tokens=True))
