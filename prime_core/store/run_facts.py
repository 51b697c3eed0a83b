"""What a prepared run demands of submissions, read from its lock, task lists and config.

Called once by the intake and by each validator; what doesn't fit the lock is refused here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api.errors import IntegrityError
from prime_core.assignment import EnvironmentShare
from prime_core.store import layout
from prime_core.store.checks import Limits
from prime_core.store.objects import ObjectStore
from prime_core.store.records import LIMIT, Lock, TaskList

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig


def read_lock(config: RunConfig, store: ObjectStore) -> Lock:
    """The run's lock.

    Raises:
        StoreError: there is none: the directory isn't prepared.
        IntegrityError: it's another run's.
    """
    lock = Lock.from_json(store.get(layout.LOCK, LIMIT), where=layout.LOCK)
    if config.run.id is not None and lock.run_id != config.run.id:
        raise IntegrityError(
            f"the lock is of run {lock.run_id}, the config of {config.run.id}",
            where=layout.LOCK,
            fix="use the run directory's own run.toml",
        )
    return lock


def read_task_lists(config: RunConfig, store: ObjectStore, lock: Lock) -> dict[str, TaskList]:
    """Every training environment's task list; IntegrityError where the lock names another."""
    return {choice.label: _task_list(store, choice.label, lock) for choice in config.environments}


def environment_shares(config: RunConfig, tasks: dict[str, TaskList]) -> list[EnvironmentShare]:
    """The environments as the assignment draws them, in the config's order."""
    return [
        EnvironmentShare(choice.label, choice.weight, len(tasks[choice.label].indices))
        for choice in config.environments
    ]


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
        node_classes={node.label: node.node_class for node in config.swarm.nodes},
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
