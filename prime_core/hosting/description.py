"""What a pool knows of its environment, as the hosts' own interpreter describes it.

Made when a pool is opened; worker, trainer and lock file read it. Invariant: nothing here comes
from an import in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prime_core.api.types import EnvironmentInfo
from prime_core.hosting import values, wire


@dataclass(frozen=True, slots=True)
class HostedPlugin:
    """A plugin that a host made, and the distribution that it comes from there."""

    kind: str
    name: str
    distribution: str
    version: str


@dataclass(frozen=True, slots=True)
class HostDescription:
    """An environment in its hosts.

    Attributes:
        label: its name in rollouts and metrics.
        info: what the environment declares about itself.
        task_count: number of tasks; they are addressed by 0..task_count-1.
        multi_turn: it has `reply`.
        has_gold: it has `gold` (and `wrong`, where it can).
        verifier: name of the verifier plugin, or the class of the environment's own object.
        params: validated parameters by kind (environment, verifier, reward); secrets are stars.
        plugins: the plugins made, with distributions and versions.
        distributions: every distribution of the hosts' interpreter, name to version.
        api: the version of the extension surface there.
        prime_core: the version of prime-core there.
        python: the Python version there.
        ids_checked: how many task ids were compared; all of them up to 200,000 tasks.
        checks_golds: the verifier has `check_gold`.
        notes: lines of the environment on what was left out of its data.
    """

    label: str
    info: EnvironmentInfo
    task_count: int
    multi_turn: bool
    has_gold: bool
    verifier: str
    params: Mapping[str, Any]
    plugins: tuple[HostedPlugin, ...]
    distributions: Mapping[str, str]
    api: str
    prime_core: str
    python: str
    ids_checked: int
    checks_golds: bool
    notes: tuple[str, ...]


def read_description(label: str, value: object) -> HostDescription:
    """The description that a host sent.

    Raises:
        FormatError: it isn't one.
    """
    found = values.mapping(value, "description")

    def plugin(item: object, what: str) -> HostedPlugin:
        names = values.mapping(item, what)
        keys = ("kind", "name", "distribution", "version")
        return HostedPlugin(*(values.text(names.get(key), f"{what}.{key}") for key in keys))

    distributions = values.mapping(found.get("distributions"), "description.distributions")
    return HostDescription(
        label=label,
        info=wire.read_info(found.get("info")),
        task_count=values.whole(found.get("task_count"), "description.task_count"),
        multi_turn=found.get("multi_turn") is True,
        has_gold=found.get("has_gold") is True,
        verifier=values.text(found.get("verifier"), "description.verifier"),
        params=values.mapping(found.get("params"), "description.params"),
        plugins=values.sequence(found.get("plugins"), "description.plugins", plugin),
        distributions={name: values.text(version, name) for name, version in distributions.items()},
        api=values.text(found.get("api"), "description.api"),
        prime_core=values.text(found.get("prime_core"), "description.prime_core"),
        python=values.text(found.get("python"), "description.python"),
        ids_checked=values.whole(found.get("ids_checked"), "description.ids_checked"),
        checks_golds=found.get("checks_golds") is True,
        notes=values.sequence(found.get("notes", []), "description.notes", values.text),
    )
