"""Combinations of values that can't work, each with its fix.

Called by `prime_core.config.load` on a config whose single values are valid. A rule refuses what
could never work or would train on something else than it says, never what is merely unwise.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from prime_core.config.clash import Clash
from prime_core.config.locate import KeyPath
from prime_core.config.sections import EnvironmentChoice, RunConfig
from prime_core.config.trust_rules import TRUST_RULES
from prime_core.config.walk import choices


def clashes(config: RunConfig) -> list[Clash]:
    """Every clash of a config."""
    return [
        clash
        for rule in (
            _batch,
            _packing,
            _node_class,
            _labels,
            _held_out,
            _evaluation,
            _store,
            _policies,
            *TRUST_RULES,
            _nan,
        )
        for clash in rule(config)
    ]


def _batch(config: RunConfig) -> Iterator[Clash]:
    trainer = config.trainer
    groups, steps = trainer.groups_per_step, trainer.optimizer_steps
    keys: tuple[KeyPath, ...] = (("trainer", "optimizer_steps"), ("trainer", "groups_per_step"))
    if groups % steps:
        above = math.ceil(groups / steps) * steps
        yield Clash(
            keys,
            f"groups_per_step {groups} can't be split evenly into optimizer_steps {steps}, so "
            "that some groups would weigh more than others",
            f"set trainer.groups_per_step to {above}, or trainer.optimizer_steps to a divisor of "
            f"{groups}",
        )
    elif groups // steps * trainer.group_size < trainer.ranks:
        rollouts = groups // steps * trainer.group_size
        yield Clash(
            (("trainer", "ranks"), *keys),
            f"{trainer.ranks} ranks share {rollouts} rollouts of an optimizer step, so that some "
            "would never have any",
            f"lower trainer.ranks to {rollouts} or fewer",
        )


def _packing(config: RunConfig) -> Iterator[Clash]:
    engine = config.engine
    limit = engine.token_limit(engine.node_class)
    needed = engine.max_prompt_tokens + limit
    of_class = ("engine", "classes", engine.node_class, "max_tokens")
    if config.trainer.pack_tokens < needed:
        yield Clash(
            (
                ("trainer", "pack_tokens"),
                of_class if engine.node_class in engine.classes else ("engine", "max_tokens"),
                ("engine", "max_prompt_tokens"),
            ),
            f"pack_tokens {config.trainer.pack_tokens} can't hold the longest rollout: "
            f"{engine.max_prompt_tokens} prompt and {limit} completion tokens",
            f"raise trainer.pack_tokens to {needed}, or lower engine.max_tokens or "
            "engine.max_prompt_tokens",
        )


def _node_class(config: RunConfig) -> Iterator[Clash]:
    engine = config.engine
    if engine.classes and engine.node_class not in engine.classes:
        names = sorted(engine.classes)
        near = difflib.get_close_matches(engine.node_class, names, n=1) or names[:1]
        yield Clash(
            (("engine", "node_class"), ("engine", "classes")),
            f"node_class {engine.node_class} isn't one of engine.classes: {', '.join(names)}",
            f'set engine.node_class = "{near[0]}", or add [engine.classes.{engine.node_class}]',
        )


def _labels(config: RunConfig) -> Iterator[Clash]:
    for path, environments in _environment_lists(config):
        seen: set[str] = set()
        for index, choice in enumerate(environments):
            if choice.label in seen:
                yield Clash(
                    ((*path, index, "name" if choice.name else "use"),),
                    f"two environments are labelled {choice.label}, so that their rollouts and "
                    "metrics would be mixed up",
                    f'give this one a name of its own, e.g. name = "{choice.label}-2"',
                )
            seen.add(choice.label)


def _held_out(config: RunConfig) -> Iterator[Clash]:
    for index, held in enumerate(config.eval.environments):
        for choice in config.environments:
            if (held.use, held.params, held.python) == (choice.use, choice.params, choice.python):
                yield Clash(
                    (("eval", "environments", index, "use"), ("environments",)),
                    f"the evaluation environment {held.label} has the tasks that training "
                    f"environment {choice.label} trains on: nothing is held out",
                    "give it parameters of its own that select other tasks, e.g. a held-out split",
                )
                break


def _evaluation(config: RunConfig) -> Iterator[Clash]:
    if config.eval.every and not config.eval.environments:
        yield Clash(
            (("eval", "every"), ("eval", "environments")),
            f"eval.every is {config.eval.every}, but there is no environment to evaluate on",
            "add [[eval.environments]] with held-out tasks, or remove eval.every",
        )


def _store(config: RunConfig) -> Iterator[Clash]:
    url = config.store.url
    if url is None:
        return
    key: tuple[KeyPath, ...] = (("store", "url"),)
    parts = urlsplit(url)
    if parts.scheme == "memory":
        yield Clash(
            key,
            "a memory:// store can't be shared by the run's processes",
            "remove store.url (the run's directory is used), or use a file:// or s3:// URL",
        )
    if parts.password:
        yield Clash(
            key,
            "store.url holds a password, which must not stand in a run config",
            "remove it; storage drivers read credentials from environment variables",
        )


def _policies(config: RunConfig) -> Iterator[Clash]:
    needed = config.async_.max_lag + 2
    if config.store.keep_policies < needed:
        yield Clash(
            (("store", "keep_policies"), ("async", "max"), ("async", "level")),
            f"keep_policies {config.store.keep_policies} deletes versions that a lag of "
            f"{config.async_.max_lag} still needs",
            f"set store.keep_policies to {needed} or more",
        )


def _shardcast(config: RunConfig) -> Iterator[Clash]:
    settings, needed = config.shardcast, config.async_.max_lag + 2
    if settings.mode == "local":
        return
    if settings.keep is not None and settings.keep < needed:
        yield Clash(
            (("shardcast", "keep"), ("async", "max")),
            f"shardcast.keep {settings.keep} is below max lag + 2, so that relays would drop "
            "versions that steps still need",
            f"set shardcast.keep to at least {needed}, or leave it out",
        )
    url = config.store.url
    if url is not None and "://" in url and not url.startswith("file://"):
        yield Clash(
            (("shardcast", "mode"), ("store", "url")),
            "an origin serves a store on the trainer's own disk",
            'set shardcast.mode = "local", or remove store.url',
        )


def _nan(config: RunConfig) -> Iterator[Clash]:
    for path, choice in choices(config):
        for inside in _nans(choice.params):
            yield Clash(
                ((*path, "with", *inside),),
                f"{inside[-1]} is nan, which equals nothing, not even itself",
                "give it a number",
            )


def _nans(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    if isinstance(value, float) and math.isnan(value):
        yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _nans(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _nans(part, (*path, index))


def _environment_lists(
    config: RunConfig,
) -> Iterator[tuple[KeyPath, Sequence[EnvironmentChoice]]]:
    yield ("environments",), config.environments
    yield ("eval", "environments"), config.eval.environments
