"""Makes a run directory: the resolved config, the model, the filtered task lists, the lock.

It runs in a process of its own, because the model and the tokenizer need torch's world. `lock.json`
is written last, so a directory without one is known to be unfinished and is prepared again.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api.errors import PrimeError
from prime_core.run.claiming import config_digest
from prime_core.run.listing import check_held_out, list_tasks
from prime_core.run.placing import place_model
from prime_core.store.layout import KEYS, LOCK, tasks_path

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig


def prepare(config: RunConfig) -> None:
    """Everything between a claimed directory and a run that can start; safe to repeat."""
    from prime_core.engines import check_trainable, open_engine
    from prime_core.hub import Hub, RunContext
    from prime_core.hub.selection import selections
    from prime_core.run.publications import hosted, locked
    from prime_core.signing import Signer
    from prime_core.store.identities import make_keys
    from prime_core.store.objects import open_store
    from prime_core.store.records import Lock, LockedPlugin

    store = open_store(config)
    hub = Hub.discover(block=config.plugins.block)
    context = RunContext.from_environment(config.run.dir)
    (config.run.dir / KEYS).mkdir(mode=0o700, exist_ok=True)
    key = config.run.dir / KEYS / "trainer.key"
    if not key.exists():
        Signer.create(key)
    if config.run.trust != "none":
        make_keys(config)
    digest = place_model(config, context.cache_dir)
    lists, distributions, of_hosts = {}, {}, []
    for environment in config.environments:
        found, members, made = asyncio.run(list_tasks(config, environment, hub, context))
        of_hosts += hosted(made, environment.python)
        lists[environment.label], distributions[environment.label] = found, members
        if not store.exists(tasks_path(environment.label)):
            store.put(tasks_path(environment.label), found.to_json())
    for environment in config.eval.environments:
        asyncio.run(check_held_out(config, environment, context))
    engine = open_engine(config, hub, context)
    check_trainable(engine)
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
