"""What a run config selects: one entry per plugin choice, in the order of the config's sections.

Used by the doctor, by whoever checks a config before the run, and by the lock file. The verifier
that an environment names itself is known only to its host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import PluginError
from prime_core.hub.kinds import HOSTED_KINDS, OBSERVER

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, PluginChoice, RunConfig
    from prime_core.hub.hub import Hub


@dataclass(frozen=True, slots=True)
class Selection:
    """One plugin choice of a run config.

    Attributes:
        kind: the kind of plugin.
        choice: name, version specifier and parameters.
        where: dotted place in the config, e.g. `environments.0.verifier`.
        python: interpreter of the environment's hosts; None for this one.
    """

    kind: str
    choice: PluginChoice
    where: str
    python: Path | None = None


def selections(config: RunConfig) -> list[Selection]:
    """Every plugin choice of a run config."""
    found = [
        Selection("inference_engine", config.engine, "engine"),
        Selection("loss", config.loss, "loss"),
        Selection("advantage", config.advantage, "advantage"),
        *_of_environments(config.environments, "environments"),
        *_of_environments(config.eval.environments, "eval.environments"),
    ]
    # The reward function runs in the hosts of every training environment, each its interpreter.
    found += [
        Selection("reward", config.reward, "reward", python)
        for python in dict.fromkeys(environment.python for environment in config.environments)
    ]
    if config.hosting.sandbox is not None:
        found += [
            Selection("sandbox", config.hosting.sandbox, "hosting.sandbox", python)
            for python in dict.fromkeys(environment.python for environment in config.environments)
        ]
    if config.length_budget is not None:
        found.append(Selection("length_budget", config.length_budget, "length_budget"))
    for place, filters in (("offline", config.filters.offline), ("online", config.filters.online)):
        found += [
            Selection("data_filter", choice, f"filters.{place}.{index}")
            for index, choice in enumerate(filters)
        ]
    found += [
        Selection("sanity_check", choice, f"checks.{index}")
        for index, choice in enumerate(config.sanity_checks)
    ]
    if config.validation.engine is not None:
        found.append(Selection("inference_engine", config.validation.engine, "validation.engine"))
    found += [
        Selection("tracker", choice, f"trackers.{index}")
        for index, choice in enumerate(config.trackers)
    ]
    return found + list(_observers(config))


def _of_environments(environments: Sequence[EnvironmentChoice], where: str) -> Iterator[Selection]:
    for index, environment in enumerate(environments):
        place = f"{where}.{index}"
        yield Selection("environment", environment, place, environment.python)
        if environment.verifier is not None:
            yield Selection(
                "verifier", environment.verifier, f"{place}.verifier", environment.python
            )


def _observers(config: RunConfig) -> Iterator[Selection]:
    from prime_core.config.sections import PluginChoice

    for index, name in enumerate(config.plugins.observers):
        choice = PluginChoice.model_validate({"use": name})
        yield Selection(OBSERVER, choice, f"plugins.observers.{index}")


def check_selections(hub: Hub, selected: Sequence[Selection]) -> list[PluginError]:
    """Every reason why a run can't use its plugins, found before any heavy import.

    Plugins of the engine's process are imported and their parameters validated. Those of
    environment hosts are only looked up in metadata here, because their code and dependencies
    belong to the hosts; and not at all where the hosts have another interpreter.
    """
    errors: list[PluginError] = []
    for selection in selected:
        try:
            if selection.kind == OBSERVER:
                hub.load_observers([selection.choice.use])
            elif selection.kind not in HOSTED_KINDS:
                hub.params(selection.kind, selection.choice)
            elif selection.python is None:
                hub.find(selection.kind, selection.choice.use, selection.choice.version)
        except PluginError as error:
            errors.append(error)
    return errors
