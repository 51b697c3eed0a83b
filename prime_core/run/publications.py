"""What publishers signed of a run's plugins: demanded when it's loaded, locked when it's prepared.

Called by `configuration` and `preparation`. A verifier that an environment names itself is known to
its host alone, so it's held against the same demand once a host has told its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prime_core.api.errors import PluginError, RunError
from prime_core.hub.selection import selections
from prime_core.publishing import trust
from prime_core.publishing.installed import Installed, installed
from prime_core.store.records import LockedPublication

if TYPE_CHECKING:
    from pathlib import Path

    from prime_core.config.sections import RunConfig
    from prime_core.hosting.description import HostedPlugin
    from prime_core.hub import Hub

Labelled = tuple[str, Installed]  # KIND.NAME and the distribution that provides it


def unpublished(hub: Hub, config: RunConfig) -> list[tuple[str, PluginError | RunError]]:
    """(place in the config, reason) of every choice that isn't published as `[plugins]` demands.

    Each distribution is named once; choices that mean no installed plugin are reported elsewhere.
    """
    demand = trust.Demand.of(config.plugins)
    found: list[tuple[str, PluginError | RunError]] = []
    seen: set[tuple[str, str]] = set()
    for selection in selections(config) if demand else ():
        try:
            one = trust.find(hub, selection)
        except PluginError:
            continue
        except RunError as error:
            found.append((selection.where, error))
            continue
        if one is None or (one.name, str(one.location)) in seen:
            continue
        seen.add((one.name, str(one.location)))
        try:
            trust.check(demand, f"{selection.kind}.{selection.choice.use}", one)
        except PluginError as error:
            found.append((selection.where, error))
    return found


def hosted(plugins: Sequence[HostedPlugin], python: Path | None) -> list[Labelled]:
    """The distributions of what a host made, in its interpreter."""
    there = installed(python).values()
    labels = [f"{plugin.kind}.{plugin.name}" for plugin in plugins]
    return [(label, one) for label in labels for one in there if label in one.entries]


def locked(
    hub: Hub, config: RunConfig, of_hosts: Sequence[Labelled]
) -> tuple[LockedPublication, ...]:
    """What `lock.json` says of publications, sorted by distribution.

    Raises:
        PluginError: a plugin isn't published as `[plugins]` demands.
    """
    mine = [
        (f"{selection.kind}.{selection.choice.use}", one)
        for selection in selections(config)
        if (one := trust.find(hub, selection)) is not None
    ]
    found = trust.check_all(trust.Demand.of(config.plugins), [*mine, *of_hosts])
    return tuple(
        LockedPublication(
            distribution=name,
            version=record.value.version,
            wheel=record.value.sha256,
            record=record.sha256,
            publisher=record.signer,
            level=record.value.check.level,
        )
        for name, record in sorted(found.items())
    )
